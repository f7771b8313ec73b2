#!/usr/bin/env bash
# Installs the build into an empty folder, builds examples/router against it, and runs the verbs of that program with
# the router defined there, by name.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$BUILD" --prefix "$folder/prefix" >/dev/null
cmake -S examples/router -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/prefix"
cmake --build "$folder/build"
mine=$folder/build/my_sparsight config=examples/router/glyphs.toml run=$folder/run

# has TEXT FILE: what the file holds is shown where it is not there.
has() { grep -q -- "$1" "$2" || { echo "no $1 in $2:"; head -c 4000 "$2"; exit 1; }; }

"$mine" config show "$config" >"$folder/show"
has 'name = "nearest_centre"' "$folder/show"
has 'commitment = 0.001' "$folder/show"
"$mine" config check "$config"
"$mine" config docs >"$folder/docs"
has 'nearest_centre' "$folder/docs"

"$mine" train "$config" --out "$run"
has 'name = "nearest_centre"' "$run/config.toml"
has '"importance"' "$run/metrics.jsonl"
has '"losses":{"commitment":\|"commitment":[0-9]' "$run/metrics.jsonl"
has '"router":{"squared_distance":[0-9]' "$run/metrics.jsonl"
[ -e "$run/done" ]

"$mine" eval "$run" --json >"$folder/eval"
has '"router":{"squared_distance":[0-9]' "$folder/eval"
"$mine" eval "$run" --set router.k=1 >"$folder/eval1"
has 'test' "$folder/eval1"
"$mine" explain "$run" --images 32 --examples 2 >"$folder/explain"
has 'pictures: ' "$folder/explain"
"$mine" report "$run" >"$folder/report"

"$mine" data make "$folder/pictures" --set side=16 --set classes=4 --set train=4 --set validation=4 --set test=4
"$mine" predict "$run" "$(find "$folder/pictures" -name '*.png' | head -1)" >"$folder/predict"
[ -s "$folder/predict" ]

# One layer on tokens of a file.
"$PYTHON" - "$folder/tokens.npy" <<'PYTHON'
import sys
import numpy
numpy.save(sys.argv[1], numpy.random.default_rng(1).standard_normal((20, 8)).astype(numpy.float32))
PYTHON
"$mine" moe "$folder/tokens.npy" --mode train --set router.name=nearest_centre --set losses.confidence=0.01 --out "$folder/layer.safetensors" \
  >"$folder/moe"
has 'loss commitment' "$folder/moe"
has 'loss confidence .*weight 0.01' "$folder/moe"
has 'router squared_distance' "$folder/moe"

# The program that does not know it says which routers it knows; a setting that the router does not have is refused
# with the nearest one.
if "$folder/prefix/bin/sparsight" config show "$config" 2>"$folder/message"; then exit 1; fi
has 'nearest_centre' "$folder/message"
if "$mine" config show "$config" --set router.temprature=2 2>"$folder/message"; then exit 1; fi
has 'did you mean "temperature"' "$folder/message"
