#!/usr/bin/env bash
# Installs the build into an empty folder, builds examples/router against it, trains with the router defined there and
# looks whether its layer took part.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$BUILD" --prefix "$folder/prefix" >/dev/null
cmake -S examples/router -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/prefix"
cmake --build "$folder/build"
"$folder/build/train_with_my_router" examples/router/glyphs.toml "$folder/run"
grep -q 'name = "nearest_centre"' "$folder/run/config.toml"
grep -q '"importance"' "$folder/run/metrics.jsonl"
[ -e "$folder/run/done" ]
# A setting that the router does not have is refused with the nearest one.
sed 's/temperature/temprature/' examples/router/glyphs.toml >"$folder/wrong.toml"
if "$folder/build/train_with_my_router" "$folder/wrong.toml" "$folder/wrong" 2>"$folder/message"; then exit 1; fi
grep -q 'did you mean "temperature"' "$folder/message"
