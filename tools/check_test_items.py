"""Prints item numbers in the names of tests (TEST(Losses, S4_...)) that tests/README.md does not explain, and items there
that no test is named after."""
import re
import subprocess
import sys

explained = set(re.findall(r"^\| ([PSMGA]\d+) \|", open("tests/README.md").read(), re.MULTILINE))
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "tests/*.cpp", "tests/*.py"],
                       capture_output=True, text=True, check=True).stdout.split()
wrong, named = 0, set()
for file in files:
    for number, line in enumerate(open(file), 1):
        name = re.match(r"TEST\w*\(\w+,\s*(\w+)|def test_(\w+)", line)
        for item in re.findall(r"(?<![^_])([PSMGA]\d+)(?=_)", (name.group(1) or name.group(2)) if name else ""):
            named.add(item)
            if item not in explained:
                print(f"{file}:{number}: {item} is not in tests/README.md")
                wrong += 1
for item in sorted(explained - named):
    print(f"tests/README.md: no test is named after {item}")
    wrong += 1
sys.exit(wrong > 0)
