#!/bin/sh
# Replaces the scripts of this folder by other versions from npm, with the licences of everything bundled in them.
# Usage: third_party/vega/update.sh VEGA VEGA_LITE VEGA_EMBED   (versions, such as 6.4.0 6.4.3 7.3.0)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm init -y >/dev/null
npm install --ignore-scripts --no-audit --no-fund "vega@$1" "vega-lite@$2" "vega-embed@$3"
for name in vega vega-lite vega-embed; do cp "node_modules/$name/build/$name.min.js" "$here/"; done
{
  echo "vega.min.js, vega-lite.min.js and vega-embed.min.js are unchanged copies from npm. They contain these packages:"
  for folder in node_modules/vega* node_modules/d3-* node_modules/delaunator node_modules/robust-predicates \
    node_modules/internmap node_modules/topojson-client node_modules/semver node_modules/fast-json-patch \
    node_modules/json-stringify-pretty-compact node_modules/tslib; do
    licence=$(find "$folder" -maxdepth 1 -iname 'licen[sc]e*' | head -n 1)
    [ -n "$licence" ] || continue
    printf '\n======== %s %s\n\n' "$(basename "$folder")" "$(node -p "require('./$folder/package.json').version")"
    cat "$licence"
  done
} >"$here/LICENSES"
cd "$here"
sha256sum vega.min.js vega-lite.min.js vega-embed.min.js >SHA256SUMS
