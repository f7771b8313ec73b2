#!/usr/bin/env bash
# Installs the build into an empty folder, builds examples/consumer against it and runs both programs.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$BUILD" --prefix "$folder/prefix" >/dev/null
cmake -S examples/consumer -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/prefix"
cmake --build "$folder/build"
[ "$("$folder/build/consumer")" = "router 0" ]
"$folder/prefix/bin/sparsight" version
