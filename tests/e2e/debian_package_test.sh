#!/usr/bin/env bash
# What docs/install.md says of the Debian package: cpack packs it from what `ninja sparsight_cli` makes; unpacked anywhere, its
# program runs on the libtorch in it; it names its dependencies and has manual pages, completions and licences.
set -euo pipefail
[ -e "$BUILD/CPackConfig.cmake" ] || { echo "this build does not install the torch of .venv, which the package has"; exit 77; }
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-dev is not installed"; exit 77; }
grep -q '^SPARSIGHT_SANITIZE:STRING=$' "$BUILD/CMakeCache.txt" || { echo "this build has sanitizers"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source tests/e2e/demo_build.sh
demo_build "$folder/build"
sed "s#$(cd "$BUILD" && pwd)#$folder/build#g" "$BUILD/CPackConfig.cmake" >"$folder/build/CPackConfig.cmake"
cpack --config "$folder/build/CPackConfig.cmake" -B "$folder/package" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
package=$(echo "$folder"/package/*.deb)
[[ $(basename "$package") =~ ^sparsight_[0-9.]+_amd64\.deb$ ]] || { echo "the package is called $package"; exit 1; }

field() { dpkg-deb --field "$package" "$1"; }
[ "$(field Package)" = sparsight ]
[ "$(field Version)" = "$("$SPARSIGHT_PROGRAM" --version | cut -d' ' -f2)" ]
for library in libc6 libstdc++6 'libpng16-16' libzip libtiff; do
  field Depends | grep -qF "$library" || { echo "the package does not depend on $library: $(field Depends)"; exit 1; }
done
! field Depends | grep -iE 'torch|gomp' || exit 1
field Recommends | grep -q libcurl4

dpkg-deb --extract "$package" "$folder/root"
(cd "$folder/root" && find . -type f | sed 's#/torch/lib/.*#/torch/lib/#; s#/licenses/.*#/licenses/#; s#/man1/.*#/man1/#' | sort -u) >"$folder/files"
diff "$folder/files" - <<'TEXT' || { echo "the lines with < are in the package, those with > are not"; exit 1; }
./usr/bin/sparsight
./usr/lib/sparsight/torch/lib/
./usr/lib/sparsight/torch/licenses/
./usr/libexec/sparsight/sparsight
./usr/share/bash-completion/completions/sparsight
./usr/share/doc/sparsight/copyright
./usr/share/doc/sparsight/vega/LICENSES
./usr/share/fish/vendor_completions.d/sparsight.fish
./usr/share/man/man1/
./usr/share/zsh/site-functions/_sparsight
./usr/share/zsh/vendor-completions/_sparsight
TEXT
[ -s "$folder/root/usr/share/man/man1/sparsight-train.1" ]
used=$(LD_DEBUG=libs "$folder/root/usr/bin/sparsight" data list 2>&1 >/dev/null | sed -n 's/.*calling init: //p')
grep -q "^$folder/root/.*/lib/sparsight/torch/lib/libtorch_cpu.so" <<<"$used" || { echo "another libtorch: $used"; exit 1; }
! grep -E "^($PWD|$(cd "$BUILD" && pwd))/" <<<"$used" || { echo "the program loads these files of the clone"; exit 1; }
"$folder/root/usr/bin/sparsight" predict tests/compat/0.1.0/run tests/compat/0.1.0/image.png | grep -q '%'
