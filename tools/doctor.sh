#!/usr/bin/env bash
# Called by ./dev doctor with TORCH (version) and BUILD_PACKAGES. Says what is missing or unusual, and how to fix it.
set -uo pipefail
problems=0
ok() { printf 'ok       %s\n' "$*"; }
note() { printf 'note     %s\n' "$*"; }
bad() { printf 'PROBLEM  %s\n' "$*"; problems=$((problems + 1)); }
have() { command -v "$1" >/dev/null 2>&1; }
# at_least WANTED GOT
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# shellcheck disable=SC1091
name=$(. /etc/os-release 2>/dev/null && echo "$ID $VERSION_ID")
case $name in
  "debian 12"* | "debian 13"* | "ubuntu 22."* | "ubuntu 24."* | "ubuntu 25."* | "ubuntu 26."*) ok "system: $name" ;;
  *) note "system: ${name:-unknown}; tested on Debian 12, should work on Ubuntu 22.04 or newer" ;;
esac
[ "$(uname -m)" = x86_64 ] && ok "processor: x86_64" || note "processor: $(uname -m); only x86_64 is tested"
levels=$(grep -m1 '^flags' /proc/cpuinfo | tr ' ' '\n' | grep -xE 'avx2|avx512f|avx512_bf16|amx_tile|amx_bf16|amx_int8' | tr '\n' ' ')
[[ " $levels" == *" avx2 "* ]] && ok "instruction sets: $levels" || note "no AVX2: everything works, but slowly"
cores=$(nproc)
memory=$(awk '/MemAvailable/ { printf "%.1f", $2 / 1e6 }' /proc/meminfo)
awk -v m="$memory" 'BEGIN { exit !(m >= 2) }' && ok "$cores cores, $memory GB memory free" ||
  bad "$memory GB memory free; a compiler needs 2 GB: close programs or add swap"
disk=$(df -Pk . | awk 'NR == 2 { printf "%.1f", $4 / 1e6 }')
awk -v d="$disk" 'BEGIN { exit !(d >= 4) }' && ok "disk: $disk GB free" || bad "disk: $disk GB free here; 4 GB are needed (12 GB with a CUDA torch)"

if have dpkg-query; then
  missing=()
  for package in $BUILD_PACKAGES; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && ok "packages: all installed" ||
    bad "packages are missing: sudo apt-get install -y ${missing[*]}   (./dev build runs this if it has the rights)"
else
  note "packages: not checked, since dpkg is missing"
fi
have g++ && { v=$(g++ -dumpfullversion); at_least 11 "$v" && ok "g++ $v" || bad "g++ $v; 11 or newer is needed"; } || bad "g++ is missing"
have cmake && { v=$(cmake --version | awk 'NR == 1 { print $3 }'); at_least 3.22 "$v" && ok "cmake $v" || bad "cmake $v; 3.22 or newer is needed"; } || bad "cmake is missing"
have ccache && ok "ccache: $(ccache --version | awk 'NR == 1 { print $3 }')" || note "no ccache: clean builds compile everything again"
have python3 && { v=$(python3 -c 'import platform; print(platform.python_version())'); at_least 3.10 "$v" && ok "python $v" || bad "python $v; 3.10 or newer is needed"; } || bad "python3 is missing"

python=${SPARSIGHT_PYTHON:-.venv/bin/python}
if [ ! -x "$python" ] && ! have "$python"; then
  bad "torch: not installed yet; ./dev build installs it into .venv/"
elif version=$("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null); then
  [[ $version == "$TORCH"* ]] && ok "torch $version ($python)" || note "torch $version ($python); tested with $TORCH"
else
  bad "torch does not load in $python: $("$python" -c 'import torch' 2>&1 | tail -n 1). Remove .venv/ and run ./dev build"
fi
for variable in CXX CXXFLAGS LDFLAGS CMAKE_PREFIX_PATH LD_PRELOAD LD_LIBRARY_PATH OMP_NUM_THREADS; do
  [ -z "${!variable:-}" ] || note "$variable is set (${!variable}); it changes what is built or how fast it runs"
done
program=build/release/cli/sparsight
if [ ! -x "$program" ]; then
  note "nothing is built yet: ./dev build"
elif message=$("$program" version 2>&1); then
  ok "built: $(head -n 1 <<<"$message")"
else
  bad "the built program does not start: $(tail -n 1 <<<"$message"). Run ./dev clean, then ./dev build"
fi
if [ -n "${SPARSIGHT_DATA:-}" ]; then
  [ -d "$SPARSIGHT_DATA" ] && ok "data: $SPARSIGHT_DATA" || bad "SPARSIGHT_DATA=$SPARSIGHT_DATA is not a folder: set it to the folder of your datasets, or unset it"
else
  note "SPARSIGHT_DATA is not set: tests that need real images are skipped"
fi

[ $problems = 0 ] && echo "ok" || { [ $problems = 1 ] && echo "1 problem" || echo "$problems problems"; exit 1; }
