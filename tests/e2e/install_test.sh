#!/usr/bin/env bash
# Installs what `ninja sparsight_cli` makes into an empty folder, deletes that build, moves the installation and uses
# it: the program runs and loads nothing from the clone, examples/classify builds against it and classifies an image. A
# file that includes every header of docs/api.md compiles, and internal headers are not installed.
set -euo pipefail
# An empty entry of a run path means the current directory.
run_path() { readelf -d "$1" | sed -n 's/.*R.*PATH.*\[\(.*\)\]/\1/p'; }
for file in "$BUILD/libexec/sparsight/sparsight" "$BUILD/bench/sparsight_bench"; do
  [ -e "$file" ] || continue  # the benchmarks may not be built
  case ":$(run_path "$file"):" in *::*) echo "$file has an empty entry in its run path"; exit 1 ;; esac
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source tests/e2e/demo_build.sh
demo_build "$folder/build"
cmake --install "$folder/build" --prefix "$folder/first" >"$folder/log" 2>&1 || { tail -n 5 "$folder/log"; exit 1; }
rm -rf "$folder/build"
mv "$folder/first" "$folder/prefix"
prefix=$folder/prefix program=$folder/prefix/bin/sparsight full=$folder/prefix/libexec/sparsight/sparsight
has_torch=0
! grep -q '^SPARSIGHT_INSTALL_TORCH:BOOL=ON' "$BUILD/CMakeCache.txt" || has_torch=1

# loads PROGRAM: fails if it needs a file of the clone or of its build folder, or if a library is missing.
loads() {
  local used
  used=$(LD_DEBUG=libs "$@" 2>&1 >/dev/null | sed -n 's/.*calling init: //p')
  grep -q libtorch_cpu <<<"$used" || { echo "$1 does not load libtorch: $used"; exit 1; }
  ! grep -E "^($PWD|$(cd "$BUILD" && pwd))/" <<<"$used" || { echo "$1 loads these files of the clone"; exit 1; }
}
[ "$("$program" version)" = "$("$full" version)" ]
! ldd "$program" | grep torch || { echo "the front program loads libtorch"; exit 1; }
if [ $has_torch = 1 ]; then
  loads "$program" data list
  [ "$(run_path "$full")" = "\$ORIGIN/../../lib/sparsight/torch/lib" ]
  [ -s "$prefix/lib/sparsight/torch/licenses/LICENSE" ]
fi

cp -r examples/classify "$folder/classify"
{
  grep -oE '^\| `sparsight/[^`]+\.h`' docs/api.md | sed -E 's/.*`(.*)`/#include <\1>/'
  echo 'int everything() { return 0; }'
} >"$folder/classify/everything.cpp"
echo 'target_sources(classify PRIVATE everything.cpp)' >>"$folder/classify/CMakeLists.txt"
cmake -S "$folder/classify" -B "$folder/made" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix"
cmake --build "$folder/made"
"$folder/made/classify" tests/compat/0.1.0/run tests/compat/0.1.0/image.png | grep -q '%'
[ $has_torch = 0 ] || loads "$folder/made/classify" tests/compat/0.1.0/run tests/compat/0.1.0/image.png
if "$folder/made/classify" "$folder" tests/compat/0.1.0/image.png 2>"$folder/message"; then exit 1; fi
grep -q '^error: ' "$folder/message"
[ -e "$prefix/include/sparsight/moe/router.h" ]
[ ! -e "$prefix/include/sparsight/ops/cpu" ]
! grep -rlF "$PWD/" "$prefix/lib/cmake" || { [ $has_torch = 0 ] || { echo "these files name the clone"; exit 1; }; }

# Without its libtorch, one message says what to pass; a Python with that torch will do.
if [ $has_torch = 1 ]; then
  rm -rf "$prefix/lib/sparsight"
  if cmake -S examples/classify -B "$folder/without" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$folder/message" 2>&1; then exit 1; fi
  tr -s ' \n' ' ' <"$folder/message" >"$folder/line"
  grep -qF 'This installation of Sparsight needs libtorch' "$folder/line"
  grep -qF 'pass -DSPARSIGHT_PYTHON=<python that has torch' "$folder/line"
  ! grep -q './dev' "$folder/line"
  rm -rf "$folder/without"
  cmake -S examples/classify -B "$folder/without" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DSPARSIGHT_PYTHON="$PYTHON"
fi
