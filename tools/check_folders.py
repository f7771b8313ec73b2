"""Prints violations of docs/architecture.md: includes against the order of the library's folders, uses of is_training()
in models, and includes of torch/torch.h."""
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
sys.exit(wrong > 0)
