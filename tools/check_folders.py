"""Prints violations of docs/architecture.md: includes and calls against the order of the library's folders, uses of
is_training() in models, includes of torch/torch.h, and sources of the fuzz targets that do not exist."""
import os
import re
import subprocess
import sys

order = re.search(r"set\(SPARSIGHT_FOLDERS (core [a-z ]+)\)", open("CMakeLists.txt").read()).group(1).split()
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "sparsight/*.h", "sparsight/*.cpp"],
                       capture_output=True, text=True, check=True).stdout.split()
wrong = 0
for file in files:
    folder = file.split("/")[1]
    for number, line in enumerate(open(file), 1):
        included = re.match(r'#include "sparsight/(\w+)/', line)
        if included and order.index(included.group(1)) > order.index(folder):
            print(f"{file}:{number}: {folder}/ must not include {included.group(1)}/: {line.strip()}")
            wrong += 1
        if folder in ("nn", "moe", "models") and re.search(r"\bis_training\(\)", line.split("//")[0]):
            print(f"{file}:{number}: use ForwardMode instead of is_training()")
            wrong += 1
        if line.startswith("#include <torch/torch.h>"):
            print(f"{file}:{number}: torch/torch.h costs 1.5 GB and half a minute per file; include single headers of ATen or torch")
            wrong += 1

# A function outside classes that one folder declares and a later one defines is a call against the order.
TYPED = r"^(?!return|else|using|template|friend)[A-Za-z][\w:<>,&*]*(?: [\w:<>,&*]+)*[ &*]"
DECLARED = re.compile(TYPED + r"(\w+)\([^{};]*\);", re.MULTILINE)
DEFINED = re.compile(TYPED + r"(\w+)\([^{};]*\) \{", re.MULTILINE)
declared, defined = {}, {}
for file in files:
    text = re.sub(r"namespace \{.*?\n\}  // namespace\n", "", open(file).read(), flags=re.DOTALL)
    found, pattern = (declared, DECLARED) if file.endswith(".h") else (defined, DEFINED)
    for name in set(pattern.findall(text)):
        found.setdefault(name, set()).add(file)
for name, headers in sorted(declared.items()):
    sources = defined.get(name, set())
    if len(headers) > 1 or len(sources) != 1:
        continue  # overloads, and templates
    header, source = min(headers), min(sources)
    if order.index(source.split("/")[1]) > order.index(header.split("/")[1]):
        print(f"{header}: declares {name}(), which {source} defines: a call against the order")
        wrong += 1

# The fuzz targets compile sources that they name, and are built after everything else.
for source in re.findall(r"\$\{PROJECT_SOURCE_DIR\}/([\w/]+\.cpp)", open("tests/fuzz/CMakeLists.txt").read()):
    if not os.path.exists(source):
        print(f"tests/fuzz/CMakeLists.txt: {source} does not exist; did it move?")
        wrong += 1
sys.exit(wrong > 0)
