"""No source file lists components by hand, in help, errors or elsewhere: their names are in `sparsight config catalogue`, which
reads the registries. Three names of a kind in a row, in one string, are such a list."""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOINED = r'"\s*\n?\s*"'  # strings that the compiler joins
SEPARATOR = r"`?(?:, or | or | and |, and |, | \| )`?"


def lists_in(text, names):
    any_name = "(?:" + "|".join(map(re.escape, sorted(names, key=len, reverse=True))) + ")"
    for string in re.findall(r'"(?:[^"\\\n]|\\.)*"', re.sub(JOINED, "", text)):
        found = re.search(rf"(?<![\w.]){any_name}(?:{SEPARATOR}{any_name}){{2,}}(?!\w)", string)
        if found:
            yield found.group(0)


def main():
    printed = subprocess.run([os.environ["SPARSIGHT_PROGRAM"], "config", "catalogue"], check=True, capture_output=True).stdout
    kinds = json.loads(printed)["components"]
    assert {"router", "model", "algorithm", "domainbed"} <= kinds.keys(), kinds.keys()
    assert list(lists_in('f("one of softmax_topk, "\n  "noisy_topk or top_p")', kinds["router"])), "the search finds nothing"
    wrong = []
    for folder in ("cli", "sparsight", "python"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".h", ".py"):
                text = path.read_text()
                for kind, names in kinds.items():
                    wrong += [f"{path.relative_to(ROOT)}: {found} ({kind})" for found in lists_in(text, names) if len(names) > 2]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
