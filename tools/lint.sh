#!/usr/bin/env bash
# Called by ./dev lint with PYTHON (has torch) and JOBS. Checks formatting, sizes and retired words; runs clang-tidy.
# clang-tidy skips a file that was clean, until it, a header that it includes or the settings change.
set -euo pipefail
problems=0
mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.h' '*.hpp' '*.c' '*.cpp')

clang-format --dry-run -Werror "${sources[@]}" || { echo "formatting: run ./dev format"; problems=1; }

# Paths of one machine, and code for one machine's processor, must not be committed.
if git grep -nE '(^|[^[:alnum:]_.])/(work|root|home)/|-march=native' -- . ':!tools/lint.sh' ':!LICENSE'; then
  echo "text: the lines above name one machine's paths or processor"
  problems=1
fi
if git grep -nE "^(<<<<<<<|>>>>>>>) " -- .; then
  echo "text: the lines above are left over from a merge"
  problems=1
fi
while IFS= read -r long; do
  echo "size: $long lines; split files of more than 400 lines"
  problems=1
done < <(wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 400')

# Prose: code blocks and tables may be wider.
if git ls-files '*.md' ':!third_party' | xargs awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code } !code && !/^\|/ && length > 120 {
  print FILENAME ":" FNR; wide = 1 } END { exit wide }'; then :; else
  echo "prose: the lines above are over 120 columns wide"
  problems=1
fi

# Standard output and standard error have one writer each, which escapes what could steer a terminal.
if git grep -nE 'std::(cout|cerr|clog)\b|\b(printf|puts|putchar|perror)\(|\bf(printf|puts|write)\([^;]*std(out|err)' -- cli runtime sparsight \
  ':!cli/output.*' ':!sparsight/core/log.*' ':!*.md'; then
  echo "output: the lines above print by themselves; use output() (cli/output.h) or log_info() (sparsight/core/log.h)"
  problems=1
fi

"$PYTHON" tools/check_folders.py || { echo "folders: see docs/architecture.md"; problems=1; }
"$PYTHON" tools/check_test_items.py || { echo "tests: name the items above in tests/README.md"; problems=1; }
"$PYTHON" tools/check_words.py || { echo "words: see tools/check_words.py"; problems=1; }
"$PYTHON" tools/check_function_length.py || { echo "size: split functions of more than 60 lines"; problems=1; }

# clang-tidy reads a folder configured for clang without precompiled headers; nothing is built there.
folder=build/lint
mkdir -p "$folder" .cache/lint
cmake -S . -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  -DSPARSIGHT_BUILD_RUNTIME=ON -DSPARSIGHT_PYTHON="$PYTHON" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
tidy() {
  local file=$1 mark=.cache/lint/$2
  [ ! -e "$mark" ] || exit 0
  if clang-tidy --quiet -p build/lint "$file" 2>.cache/lint/stderr-$$; then
    touch "$mark"
  else
    grep -E 'error' .cache/lint/stderr-$$ || true
    exit 1
  fi
}
export -f tidy
files=$("$PYTHON" tools/lint_files.py "$folder")
echo "clang-tidy: $(wc -l <<<"$files") files"
xargs -P "$JOBS" -L1 bash -c 'tidy "$0" "$1"' <<<"$files" || problems=1
rm -f .cache/lint/stderr-*

[ $problems = 0 ] && echo "lint: clean" || { echo "lint: see above"; exit 1; }
