#!/usr/bin/env bash
# `pip install .` into environments of their own that have torch or not, and use of the package from another folder.
# With ccache the package is built as a user's would be, from what the tests' build has compiled; without, which would take
# minutes, the tests' build is packed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$PYTHON" -m venv --without-pip "$folder/venv"
python=$folder/venv/bin/python
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
install() { "$PYTHON" -m pip --python "$python" --disable-pip-version-check install --no-index --no-deps "$@" .; }

# refused WORDS ARGUMENT...: the installation fails and says WORDS.
refused() {
  local words=$1
  shift
  if install "$@" >"$folder/message" 2>&1; then
    echo "installed with $*; expected: $words"
    exit 1
  fi
  grep -qF "$words" "$folder/message" || { cat "$folder/message"; exit 1; }
}

refused 'sparsight needs torch 2.11 or newer'
"$PYTHON" -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).parents[1])' >"$site/torch.pth"
refused 'was not built against' --config-settings=build-dir="$folder"
how=()
command -v ccache >/dev/null || how=(--config-settings=build-dir="$BUILD")
install "${how[@]}"
cd "$folder"
"$python" - <<'PY'
import pathlib
import sys
import torch
import sparsight
assert pathlib.Path(sparsight.__file__).is_relative_to(sys.prefix), sparsight.__file__
layer = sparsight.MoEMLP(16, 32, experts=4, k=2)
y, routing = layer(torch.randn(2, 5, 16), return_routing=True)
(y.square().mean() + routing.loss).backward()
assert layer.experts.w1.grad.isfinite().all()
print("installed", sparsight.__version__)
PY
"$PYTHON" -m pip --python "$python" --disable-pip-version-check uninstall -y sparsight
[ ! -e "$site/sparsight" ]
