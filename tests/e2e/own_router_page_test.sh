#!/usr/bin/env bash
# Follows docs/add_your_router.md word by word, as someone does who has only run ./dev demo: its files are written, its
# commands run, and its fragments of C++ put into a copy of its program, my_relu. Only the training is shorter than that
# of configs/demo.toml.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
source tests/e2e/demo_build.sh
page=$PWD/docs/add_your_router.md
mkdir -p "$folder/clone/build" "$folder/clone/configs" "$folder/clone/.venv/bin" "$folder/home"
demo_build "$folder/clone/build/release"
sed -E 's/^(train|validation|test) = [0-9]+$/\1 = 128/; s/^epochs = .*/epochs = 1\nlog_every = 4/' configs/demo.toml >"$folder/clone/configs/demo.toml"
printf '#!/bin/sh\nexec "%s" "$@"\n' "$PYTHON" >"$folder/clone/.venv/bin/python"
chmod +x "$folder/clone/.venv/bin/python"
cd "$folder/clone"

# A block is a file if the line before it names one ("Add to" appends to it), a script, or a fragment.
"$PYTHON" - "$page" <<'PYTHON'
import pathlib, re, sys
lines = pathlib.Path(sys.argv[1]).read_text().split("\n")
scripts, fragments, before, i = [], [], "", 0
while i < len(lines):
    if not re.fullmatch(r"```(\w+)", lines[i]):
        before = lines[i] or before
        i += 1
        continue
    kind, end = lines[i][3:], lines.index("```", i + 1)
    text = "\n".join(lines[i + 1:end]) + "\n"
    name = re.search(r"`(my_router/[\w.]+)`[^`]*:$", before)
    if name:
        path = pathlib.Path(name[1])
        path.parent.mkdir(exist_ok=True)
        with open(path, "a" if before.startswith("Add to") else "x") as file:
            file.write(text)
    else:
        {"bash": scripts, "cpp": fragments}[kind].append(text)
    i = end + 1
assert len(scripts) == 1 and len(fragments) == 3, (len(scripts), len(fragments))
pathlib.Path("commands").write_text("set -eux\nshopt -s expand_aliases\n" + scripts[0] + """
my_router/build/my_relu train configs/demo.toml --set router.name=my_relu --out runs/my_relu
my_router/build/my_relu eval runs/my_relu
""")
ending, loss, noise = fragments
purposes = '  std::vector<std::string> random_purposes() const override { return {"noise"}; }\n'
relu = pathlib.Path("my_router/main.cpp").read_text()
for old, new in ((r" +routing\.scores = .*return routing;\n", noise + ending),
                 (r" +std::vector<LossWeight> [^\n]*\n", loss + purposes),
                 (r" / options_\.temperature", ""), ("temperature = 1", "l1 = 0.01"), ("temperature", "l1"),
                 ("my_topk", "my_relu"),
                 ("using namespace", "#include <sparsight/moe/losses/token_sums.h>\nusing namespace")):
    relu, count = re.subn(old, lambda _: new, relu, flags=re.S)
    assert count, old
pathlib.Path("my_router/relu.cpp").write_text(relu)
with open("my_router/CMakeLists.txt", "a") as file:
    file.write("add_executable(my_relu relu.cpp)\ntarget_link_libraries(my_relu sparsight::cli)\n")
PYTHON
HOME=$folder/home bash commands >log 2>&1 || { tail -n 40 log; exit 1; }

# has TEXT FILE
has() { grep -q -- "$1" "$2" || { echo "no $1 in $2:"; tail -c 4000 "$2"; exit 1; }; }
for run in my_topk my_relu; do
  [ -e runs/$run/done ]
  has "name = \"$run\"" runs/$run/config.toml
done
has '"l1":' runs/my_relu/metrics.jsonl
has '"tokens_with":\[' runs/my_relu/metrics.jsonl
has 'experts per token' log
[ -s layer.safetensors ]
