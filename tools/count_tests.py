"""Sums the results of all kinds of tests in a folder and prints `N passed, N failed, N skipped` as the last line.

gtest-*.json are GoogleTest's reports, one of each process; *.txt have lines `passed NAME`, `failed NAME` or `skipped NAME: why`.
Exits 1 if a test failed or none ran.
"""
import collections
import json
import pathlib
import sys


def count_gtest(path, counts, skipped):
    try:
        report = json.loads(path.read_text())
    except (OSError, ValueError):
        print("the C++ tests left no report: the program crashed or did not start")
        counts["failed"] += 1
        return
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if test.get("status") != "RUN":
                continue  # left out by the filter, or DISABLED_
            if test.get("failures"):
                counts["failed"] += 1
                print("failed", name)
            elif test.get("result") == "SKIPPED":
                counts["skipped"] += 1
                skipped.append(name)
            else:
                counts["passed"] += 1


def main(folder):
    counts = collections.Counter(passed=0, failed=0, skipped=0)
    skipped = []
    for log in sorted(folder.glob("gtest-*.log")):
        count_gtest(log.with_suffix(".json"), counts, skipped)
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text().splitlines():
            word = line.split(" ", 1)[0]
            if word in ("passed", "failed", "skipped"):
                counts[word] += 1
            if word == "failed":
                print(line)
    if skipped:
        print("skipped:", ", ".join(skipped))
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
