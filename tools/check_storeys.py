"""Prints includes that break the order of the library's folders (docs/architecture.md): a folder includes only folders above it."""
import re
import subprocess
import sys

order = re.search(r"set\(SPARSIGHT_STOREYS (core [a-z ]+)\)", open("CMakeLists.txt").read()).group(1).split()
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "sparsight/*.h", "sparsight/*.cpp"],
                       capture_output=True, text=True, check=True).stdout.split()
wrong = 0
for file in files:
    storey = file.split("/")[1]
    for number, line in enumerate(open(file), 1):
        included = re.match(r'#include "sparsight/(\w+)/', line)
        if included and order.index(included.group(1)) > order.index(storey):
            print(f"{file}:{number}: {storey}/ stands above {included.group(1)}/: {line.strip()}")
            wrong += 1
        if line.startswith("#include <torch/torch.h>"):
            print(f"{file}:{number}: torch/torch.h costs 1.5 GB and half a minute a file; include ATen's or torch's single headers")
            wrong += 1
sys.exit(wrong > 0)
