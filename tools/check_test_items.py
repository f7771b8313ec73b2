"""Prints item numbers in the names of tests (TEST(Losses, S4_...)) that tests/README.md does not explain."""
import re
import subprocess
import sys

explained = set(re.findall(r"^\| ([PSMGA]\d+) \|", open("tests/README.md").read(), re.MULTILINE))
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "tests/*.cpp"],
                       capture_output=True, text=True, check=True).stdout.split()
wrong = 0
for file in files:
    for number, line in enumerate(open(file), 1):
        for item in re.findall(r"^TEST\w*\(\w+, ([PSMGA]\d+)_", line):
            if item not in explained:
                print(f"{file}:{number}: {item} is not in tests/README.md")
                wrong += 1
sys.exit(wrong > 0)
