#!/usr/bin/env bash
# Installs libsparsight_infer alone, moves the installation, and builds the examples against it, by find_package and by
# pkg-config: they run and say what sparsight-run says. The library exports its interface only, and has its size.
set -euo pipefail
[ -e "$BUILD/runtime/libsparsight_infer.so" ] || { echo "this build has no libsparsight_infer"; exit 77; }
folder=$(mktemp -d)
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null || true; rm -rf "$folder"' EXIT
cmake --install "$BUILD" --component sparsight_infer --prefix "$folder/first" >/dev/null
mv "$folder/first" "$folder/prefix"
prefix=$folder/prefix run=$folder/prefix/bin/sparsight-run
(cd "$prefix" && find . -type f | sort) >"$folder/files"
diff "$folder/files" - <<'TEXT' || { echo "the lines with < are installed, those with > are not"; exit 1; }
./bin/sparsight-run
./include/sparsight/infer.h
./include/sparsight/infer.hpp
./lib/cmake/sparsight_infer/sparsight_inferConfig.cmake
./lib/cmake/sparsight_infer/sparsight_inferConfigVersion.cmake
./lib/cmake/sparsight_infer/sparsight_infer_shared-release.cmake
./lib/cmake/sparsight_infer/sparsight_infer_shared.cmake
./lib/cmake/sparsight_infer/sparsight_infer_static-release.cmake
./lib/cmake/sparsight_infer/sparsight_infer_static.cmake
./lib/libsparsight_infer.a
./lib/libsparsight_infer.so.1.0.1.0
./lib/pkgconfig/sparsight_infer.pc
TEXT

library=$prefix/lib/libsparsight_infer.so
readelf -d "$library" | grep -q 'SONAME.*\[libsparsight_infer.so.1\]'
! readelf -d "$library" | grep NEEDED | grep -E 'torch|python|gomp|omp' || exit 1
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort >"$folder/exported"
grep -oE '^SPARSIGHT_INFER_API .*\(|^ +sparsight_infer_[a-z_]+\(' "$prefix/include/sparsight/infer.h" |
  grep -oE 'sparsight_infer_[a-z_]+\(' | tr -d '(' | sort >"$folder/declared"
diff "$folder/declared" "$folder/exported"
[ "$(wc -l <"$folder/declared")" -le 15 ]

# Stripped, without the image libraries of the system, which it loads.
strip -o "$folder/stripped" "$library"
most=3000000
size=$(stat -c %s "$folder/stripped")
echo "libsparsight_infer.so: $size bytes stripped"
[ "$size" -le $most ] || { echo "more than $most"; exit 1; }

model=$folder/vit.sparsight image=tests/compat/0.1.0/image.png
"$BUILD/tests/sparsight_write_small_vit" "$model"
want=$("$run" "$model" "$image" --top 1 | sed 's/^[^:]*: //')
[ -n "$want" ]
experts=$("$run" "$model" "$image" --routing | tail -n +2 | sed -E 's/^ +//; s/ [0-9.]+ %,?//g')

# answers FOLDER: the three examples, built there, say what sparsight-run says.
answers() {
  "$1/infer_c" "$model" "$image" >"$folder/c"
  [ "$(head -n 1 "$folder/c")" = "$want" ] || { cat "$folder/c"; exit 1; }
  [ "$(wc -l <"$folder/c")" = 5 ]
  diff <(tail -n 2 "$folder/c") <(sort_experts <<<"$experts")
  [ "$("$1/infer_cpp" "$model" "$image" "$image")" = "$image: $want"$'\n'"$image: $want" ]
  ! "$1/infer_cpp" "$model" README.md 2>"$folder/message" || exit 1
  grep -q '^error: the image is ' "$folder/message"

  local incoming=$folder/incoming
  rm -rf "$incoming"
  mkdir "$incoming"
  "$1/watch_folder" "$model" "$incoming" >"$folder/watched" &
  watcher=$!
  wait_for '^watching' "$folder/watched"
  cp "$image" "$incoming/first.png"
  echo text >"$incoming/text.png"
  cp "$image" "$folder/second.png"
  mv "$folder/second.png" "$incoming/second.png"
  wait_for '^second.png' "$folder/watched"
  kill "$watcher"
  wait "$watcher" || true
  watcher=
  grep -qxF "first.png: $want" "$folder/watched"
  grep -qxF "second.png: $want" "$folder/watched"
  grep -q '^text.png: the image is ' "$folder/watched"
}
# The experts of each line by number, as the C example prints them.
sort_experts() { "$PYTHON" -c '
import re, sys
for line in sys.stdin:
    layer, experts = line.rstrip().split(":")
    print(layer + ":" + "".join(f" expert {e}" for e in sorted(map(int, re.findall("[0-9]+", experts)))))'; }
wait_for() {
  for _ in $(seq 300); do
    ! grep -q "$1" "$2" || return 0
    sleep 0.1
  done
  echo "there is no line with $1 in 30 s:"
  cat "$2"
  exit 1
}

export CMAKE_PREFIX_PATH=$prefix
mkdir "$folder/cmake" "$folder/cc"
for example in infer_c infer_cpp watch_folder; do
  cp -r "examples/$example" "$folder/$example"
  cmake -S "$folder/$example" -B "$folder/$example/made" -DCMAKE_BUILD_TYPE=Release >"$folder/log" &&
    cmake --build "$folder/$example/made" >>"$folder/log" || { cat "$folder/log"; exit 1; }
  cp "$folder/$example/made/$example" "$folder/cmake/"
done
answers "$folder/cmake"

# The archive instead, where the image libraries are installed with their headers.
sed -i 's/sparsight_infer 0.1 REQUIRED/sparsight_infer 0.1 REQUIRED COMPONENTS static/; s/sparsight_infer::shared/sparsight_infer::static/; s/LANGUAGES C)/LANGUAGES C CXX)/' \
  "$folder/infer_c/CMakeLists.txt"
cmake -S "$folder/infer_c" -B "$folder/infer_c/static" -DCMAKE_BUILD_TYPE=Release >"$folder/log" &&
  cmake --build "$folder/infer_c/static" >>"$folder/log" || { cat "$folder/log"; exit 1; }
! ldd "$folder/infer_c/static/infer_c" | grep sparsight || exit 1
cp "$folder/infer_c/static/infer_c" "$folder/cmake/"
answers "$folder/cmake"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
flags=$(pkg-config --cflags --libs sparsight_infer)
cc -std=c11 -Wall -Wextra -Werror examples/infer_c/main.c -o "$folder/cc/infer_c" $flags "-Wl,-rpath,$prefix/lib"
for example in infer_cpp watch_folder; do
  c++ -std=c++20 -Wall -Wextra -Werror "examples/$example/main.cpp" -o "$folder/cc/$example" $flags "-Wl,-rpath,$prefix/lib"
done
answers "$folder/cc"
flags=$(pkg-config --static --libs sparsight_infer)
cc -std=c11 examples/infer_c/main.c -o "$folder/cc/infer_c" "-I$prefix/include" ${flags/-lsparsight_infer/-l:libsparsight_infer.a}
! ldd "$folder/cc/infer_c" | grep sparsight || exit 1
answers "$folder/cc"
