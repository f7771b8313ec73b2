#!/usr/bin/env bash
# What docs/install.md says of pip: the wheel works without the clone, in an environment of its own, and an editable
# installation too; the source distribution has all that a build reads. Where torch is missing or another one, one line
# says so. The environments see the tests' torch, so nothing is downloaded, and ccache has what the tests' build compiled.
set -euo pipefail
"$PYTHON" -c 'import scikit_build_core, auditwheel' 2>/dev/null || { echo "scikit-build-core or auditwheel is not installed"; exit 77; }
command -v ccache >/dev/null || { echo "without ccache this test would compile everything again"; exit 77; }
grep -q '^SPARSIGHT_SANITIZE:STRING=$' "$BUILD/CMakeCache.txt" || { echo "this build has sanitizers"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
packages=$("$PYTHON" -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parents[1])')
unset SPARSIGHT_PYTHON
export CC=cc CXX=c++  # as in the tests' build, so that ccache has its objects

# environment NAME PATTERN...: makes $folder/NAME, whose packages are in $site, with links to those of the tests'
# environment. see_all: and shows it the others.
environment() {
  "$PYTHON" -m venv --without-pip "$folder/$1"
  site=$("$folder/$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  (cd "$packages" && for package in ${*:2}; do ln -s "$PWD/$package" "$site/$package"; done)
}
see_all() { echo "$packages" >"$site/all.pth"; }
pip() { "$PYTHON" -m pip --python "$folder/$1/bin/python" --disable-pip-version-check "${@:2}"; }
repository=$PWD

# The source distribution has every source that CMake names, and not what this clone has made.
"$PYTHON" -c 'import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])' "$folder"
tar -xzf "$folder"/sparsight-*.tar.gz -C "$folder"
rm "$folder"/sparsight-*.tar.gz
source=$(echo "$folder"/sparsight-*)
[ ! -e "$source/.venv" ] && [ ! -e "$source/build" ] && [ ! -e "$source/tests" ]
grep -q '^Dynamic: Requires-Dist' "$source/PKG-INFO"
grep -q '^Requires-Dist: torch<2.14,>=2.11' "$source/PKG-INFO"
cmake -S "$source" -B "$folder/configured" -G Ninja -DSPARSIGHT_BUILD_TESTS=OFF -DSPARSIGHT_BUILD_PYTHON=ON \
  -DSPARSIGHT_PYTHON="$PYTHON" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }

environment without scikit_build_core 'scikit_build_core-*.dist-info' packaging pathspec
if pip without install --no-index --no-deps --no-build-isolation "$source" >"$folder/message" 2>&1; then exit 1; fi
grep -q 'error: sparsight needs torch 2.11 or newer in the environment of .*: pip install torch' "$folder/message" || {
  cat "$folder/message"
  exit 1
}

# What the compiler read is in the source distribution too.
check_read_files() {
  ninja -C "$made" -t deps | sed -n "s#^ *\(\.\./\.\.\|$repository\)/##p" | grep -v '^\(build\|\.venv\)/' | sort -u >"$folder/read"
  [ "$(wc -l <"$folder/read")" -gt 500 ] || { echo "only $(wc -l <"$folder/read") files were read"; exit 1; }
  while read -r file; do [ -e "$source/$file" ] || { echo "the source distribution lacks $file"; exit 1; }; done <"$folder/read"
}

# The wheel, repaired as ./dev wheel does it. Its libraries are those of torch and of glibc, and what is inside.
environment builder
see_all
made=$(dirname "$BUILD")/wheel
settings=(--no-build-isolation --config-settings=build-dir="$made")
pip builder wheel --no-index --no-deps "${settings[@]}" -w "$folder" . >"$folder/log" 2>&1 || { tail -n 40 "$folder/log"; exit 1; }
PATH=$(dirname "$PYTHON"):$PATH "$PYTHON" -m auditwheel repair --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libgomp*' \
  -w "$folder/repaired" "$folder"/sparsight-*.whl >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
check_read_files
wheel=$(echo "$folder"/repaired/sparsight-*-py3-none-manylinux*.whl)
echo "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"

environment venv torch
see_all  # what torch needs
pip venv install --no-index --no-deps "$wheel"
python=$folder/venv/bin/python program=$folder/venv/bin/sparsight
full=$site/sparsight_native/libexec/sparsight/sparsight
! ldd "$full" | grep 'not found' || exit 1
ldd "$full" | grep -q "sparsight.libs/libzip" || { echo "libzip is not the wheel's"; exit 1; }
for file in share/man/man1/sparsight-train.1 share/bash-completion/completions/sparsight; do [ -s "$folder/venv/$file" ]; done

# Outside the clone: the program, from an empty folder to a report, and the PyTorch layer.
mkdir "$folder/empty"
cd "$folder/empty"
[ "$("$program" --version)" = "$("$SPARSIGHT_PROGRAM" --version)" ]
"$program" demo --set train.epochs=1 --set data.train=160 --set data.validation=48 --set data.test=48 >"$folder/out" 2>"$folder/log" ||
  { tail -n 20 "$folder/log"; exit 1; }
grep -qF "open the report: $folder/empty/runs/demo/report.html" "$folder/out"
[ -s runs/demo/report.html ]
use_layer='
import pathlib, sys, torch, sparsight
assert sparsight.__file__.startswith(sys.argv[1]), sparsight.__file__
layer = sparsight.MoEMLP(16, 32, experts=4, k=2)
y, routing = layer(torch.randn(2, 5, 16), return_routing=True)
(y.square().mean() + routing.loss).backward()
assert layer.experts.w1.grad.isfinite().all()
print("installed", sparsight.__version__)'
"$python" -c "$use_layer" "$site/sparsight/"
"$python" -c 'from importlib.metadata import requires; import torch
release = ".".join(torch.__version__.split(".")[:2])
assert requires("sparsight") == [f"torch=={release}.*"], requires("sparsight")'

# The C++ library: find_package takes the torch beside it.
cmake -S "$repository/examples/classify" -B "$folder/classify" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_PREFIX_PATH="$("$python" -c 'import sparsight_native; print(sparsight_native.prefix())')" >"$folder/log" &&
  cmake --build "$folder/classify" >>"$folder/log" || { tail -n 20 "$folder/log"; exit 1; }
"$folder/classify/classify" "$repository/tests/compat/0.1.0/run" "$repository/tests/compat/0.1.0/image.png" | grep -q '%'

# A torch elsewhere, another torch, no torch.
rm "$site/torch"
"$program" data list >/dev/null
mkdir "$site/torch"
printf "__version__ = '9.9.1+cpu'\n" >"$site/torch/version.py"
touch "$site/torch/__init__.py"
if "$program" version 2>"$folder/message"; then exit 1; fi
grep -q '^error: this sparsight was built for torch .*, and the environment has 9.9.1+cpu: ' "$folder/message"
rm -r "$site/torch" "$site/all.pth"
if "$program" version 2>"$folder/message"; then exit 1; fi
grep -q "^error: sparsight needs torch .*, and this environment has none: pip install 'torch==.*'" "$folder/message"
[ "$(wc -l <"$folder/message")" = 1 ]
pip venv uninstall -y sparsight >/dev/null
[ ! -e "$site/sparsight" ] && [ ! -e "$site/sparsight_native" ] && [ ! -e "$program" ]

# Editable: Python files are those of the source folder, compiled ones those of the environment.
pip builder install --no-index --no-deps "${settings[@]}" -e "$repository" >"$folder/log" 2>&1 || { tail -n 40 "$folder/log"; exit 1; }
"$folder/builder/bin/python" -c "$use_layer" "$repository/python/"
"$folder/builder/bin/sparsight" data list >"$folder/out"
grep -q glyphs "$folder/out"
