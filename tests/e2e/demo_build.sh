# demo_build FOLDER: copies what `ninja sparsight_cli` makes (all that ./dev demo builds) and what cmake wrote from $BUILD
# to FOLDER, from which `cmake --install` then installs.
demo_build() {
  local file from
  from=$(cd "$BUILD" && pwd)
  mkdir -p "$1"
  (cd "$from" && { find . -name cmake_install.cmake -o -name 'Sparsight*.cmake' | grep -v /_deps/
    ninja -t inputs cli/sparsight | grep -E '\.a$|^libexec/'; echo cli/sparsight
    find cli/share -type f; }) | while read -r file; do
    case $file in /*) continue ;; esac
    mkdir -p "$1/$(dirname "$file")"
    cp "$from/$file" "$1/$file"
  done
  find "$1" -name cmake_install.cmake -exec sed -i "s#$from#$1#g" {} +
}
