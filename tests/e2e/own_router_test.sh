#!/usr/bin/env bash
# Installs the build into an empty folder, builds examples/router against it, and runs the verbs of that program with
# the router defined there, by name.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$BUILD" --prefix "$folder/prefix" >/dev/null
cp -r examples/router "$folder/source"
cat >"$folder/source/taken.cpp" <<'CPP'
#include <sparsight/cli/main.h>
#include <sparsight/moe/register_moe.h>
#include "nearest_centre.h"
int main(int argc, char** argv) {
  return sparsight::main(argc, argv, [] {
    sparsight::routers().add<NearestCentreOptions>(
        "relu", "", [](const NearestCentreOptions& options, sparsight::RouterShape shape) {
          return std::make_shared<NearestCentreRouter>(options, shape);
        });
  });
}
CPP
cat >>"$folder/source/CMakeLists.txt" <<'CMAKE'
add_executable(taken taken.cpp nearest_centre.cpp)
target_link_libraries(taken sparsight::cli)
CMAKE
cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/prefix"
cmake --build "$folder/build"
mine=$folder/build/my_sparsight config=examples/router/glyphs.toml run=$folder/run

# has TEXT FILE: what the file holds is shown where it is not there.
has() { grep -q -- "$1" "$2" || { echo "no $1 in $2:"; head -c 4000 "$2"; exit 1; }; }

[ -s "$folder/prefix/include/sparsight/moe/axes.md" ]  # the headers refer to it
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
has 'squared_distance [0-9]' "$folder/eval1"
"$mine" explain "$run" --images 32 --examples 2 >"$folder/explain"
has 'pictures: ' "$folder/explain"
has 'squared_distance [0-9]' "$folder/explain"
"$mine" report "$run" >"$folder/report"
has 'squared_distance [0-9]' "$run/report.html"
has 'commitment' "$run/report.html"

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

# A name that is taken is a usage error of one line.
code=0
"$folder/build/taken" version 2>"$folder/message" || code=$?
[ "$code" = 2 ]
[ "$(cat "$folder/message")" = 'error: there is a router "relu" already; register it under another name' ]

# The program that does not know it says which routers it knows; a setting that the router does not have is refused
# with the nearest one.
if "$folder/prefix/bin/sparsight" config show "$config" 2>"$folder/message"; then exit 1; fi
has 'nearest_centre' "$folder/message"
if "$folder/prefix/bin/sparsight" eval "$run" 2>"$folder/message"; then exit 1; fi
has 'trained by a program that registers it: use that program' "$folder/message"
if "$mine" config show "$config" --set router.temprature=2 2>"$folder/message"; then exit 1; fi
has 'did you mean "temperature"' "$folder/message"
