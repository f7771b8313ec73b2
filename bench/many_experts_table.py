"""Prints the Markdown table of docs/benchmarks.md from the results of `./dev bench moe --json FILE`.

Use: many_experts_table.py FILE
"""

import json
import sys

OTHERS = ("dense", "loop", "grouped_mm", "oneDNN")


def milliseconds(seconds):
    value = 1e3 * seconds["median"]
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def cell(row, name):
    """A time in ms, or "-" for what does not run at this size."""
    return milliseconds(row["seconds"][name]) if name in row["seconds"] else "-"


def table(results):
    tokens = results["settings"]["tokens"]
    columns = ["E", "weights, MiB", "layer", "tokens/s", "experts alone", *OTHERS, "statistics"]
    columns += ["training step", "tokens/s", "peak, MiB"]
    lines = [columns, ["--:"] * len(columns)]
    for row in results["rows"]:
        rates = {name: f"{tokens / row['seconds'][name]['median']:,.0f}" if name in row["seconds"] else "-"
                 for name in ("layer", "train layer")}
        lines.append([f"{row['experts']:,}", f"{row['weight_bytes'] / 2**20:,.0f}", cell(row, "layer"), rates["layer"],
                      cell(row, "ours"), *(cell(row, other) for other in OTHERS), cell(row, "statistics"),
                      cell(row, "train layer"), rates["train layer"], f"{row['training_peak_bytes'] / 2**20:,.0f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        read = json.load(file)
    print(f"{read['machine']}; {read['environment']['started']}, commit {read['commit'] or 'unknown'}\n")
    print(table(read))
