#!/usr/bin/env bash
# Installs the build into an empty folder, builds examples/classify against it and classifies an image. A file that
# includes every header of docs/api.md compiles against the installation, and internal headers are not in it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$BUILD" --prefix "$folder/prefix" >/dev/null
cp -r examples/classify "$folder/classify"
{
  grep -oE '^\| `sparsight/[^`]+\.h`' docs/api.md | sed -E 's/.*`(.*)`/#include <\1>/'
  echo 'int everything() { return 0; }'
} >"$folder/classify/everything.cpp"
echo 'target_sources(classify PRIVATE everything.cpp)' >>"$folder/classify/CMakeLists.txt"
cmake -S "$folder/classify" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$folder/prefix"
cmake --build "$folder/build"
"$folder/build/classify" tests/compat/0.1.0/run tests/compat/0.1.0/image.png | grep -q '%'
if "$folder/build/classify" "$folder" tests/compat/0.1.0/image.png 2>"$folder/message"; then exit 1; fi
grep -q '^error: ' "$folder/message"
[ -e "$folder/prefix/include/sparsight/moe/router.h" ]
[ ! -e "$folder/prefix/include/sparsight/ops/cpu" ]
"$folder/prefix/bin/sparsight" version
