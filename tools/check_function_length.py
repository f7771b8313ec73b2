"""Prints the functions that are longer than 60 lines. It reads the indentation of clang-formatted code, not C++ syntax.

Usage: check_function_length.py [FILE ...]     (run from the project's root; without files, all of the project's C++)
"""
import os
import re
import subprocess
import sys

LONGEST = 60
EXEMPT = {("sparsight/io/pickle.cpp", "step")}  # one case per opcode


def blank(match):
    return "\n" * match.group().count("\n")


def functions(text):
    """Yields (first line, name, number of lines) of each function; lambdas count with the function around them."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', blank, text, flags=re.S)
    lines = [re.sub(r"\s*//.*", "", line) for line in text.split("\n")]
    start, after_end = 0, 0  # the first line of the current declaration; the first one after the last function
    for number, line in enumerate(lines):
        if number < after_end:
            continue
        if line.endswith("{"):
            signature = re.sub(r"^template <.*?>\s(?=\w)", "", " ".join(part.strip() for part in lines[start:number + 1]))
            before = signature.split("(")[0]
            other = re.match(r"(inline )?(namespace|class|struct|enum|union|extern)\b", signature)
            if "(" in signature and not other and ("=" not in before or "operator" in before):
                indent = re.match(" *", lines[start]).group()
                end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith(indent + "}")), number)
                arguments = signature.split("(")[1].split(")")[0]
                name = f"{before}({arguments})" if before.startswith("TEST") else before.split()[-1]
                yield start + 1, name, end - start + 1
                after_end = end + 1
        if number < after_end or not line.strip() or line.startswith("#") or line.endswith(("{", "}", ";", ":")):
            start = max(number + 1, after_end)


def main():
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp"]
    files = sys.argv[1:] or subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split()
    wrong = 0
    for file in filter(os.path.exists, files):  # git also lists files that are deleted but not yet committed
        with open(file) as source:
            for line, name, length in functions(source.read()):
                if length > LONGEST and (file, name.split("::")[-1]) not in EXEMPT:
                    print(f"{file}:{line}: {name} is {length} lines long, at most {LONGEST}")
                    wrong += 1
    return wrong > 0


sys.exit(main())
