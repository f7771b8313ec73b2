"""Prints the tables of `./dev bench mobile`, also from its file of results: mobile_table.py FILE"""

import json
import sys

import rounds


def brackets(interval):
    return f"{interval['median']:.2f} [{interval['low']:.2f}, {interval['high']:.2f}]"


def mebibytes(count):
    return "-" if count is None else f"{count / 2**20:.1f}"


def milliseconds(interval):
    return "-" if interval is None else rounds.milliseconds(interval["median"])


def contender_cell(row, name):
    if name not in row["seconds"]:
        return "-"
    return milliseconds(row["seconds"][name]) + (f", {brackets(row['ratios'][name])}" if name in row["ratios"] else "")


def print_times(results):
    others = list(dict.fromkeys(name for row in results["rows"] for name in row["seconds"] if name != "ours"))
    peaks = results["peaks"]
    rounds.header("size", "MLPs", "batch", "threads", "type", "ours", *(["share of peak"] if peaks else []), *others)
    for row in results["rows"]:
        ours, share = row["seconds"].get("ours"), []
        if peaks:
            peak = peaks[str(row["threads"])][row["type"]]
            share = [f"{row['operations'] / peak / ours['median']:.2f}" if ours else "-"]
        rounds.row(
            row["size"],
            row["routing"],
            row["batch"],
            row["threads"],
            row["type"],
            milliseconds(ours),
            *share,
            *(contender_cell(row, name) for name in others),
        )


def print_starts(results):
    size = results["starts"][0]["size"]
    print(
        f"\nFrom the start of a process to its first answer, {size}, dense, fp32, one thread. In Python: also what\n"
        'it adds to a process that imports NumPy alone ("none"), and the shared objects that it adds. Medians; MiB.'
    )
    rounds.header("", "ms", "added, ms", "peak", "resident (Pss)", "libraries")
    for row in results["starts"]:
        rounds.row(
            row["name"],
            milliseconds(row["seconds"]),
            milliseconds(row["added_seconds"]),
            mebibytes(row["peak_bytes"]),
            mebibytes(row["pss_bytes"]),
            mebibytes(row["library_bytes"]),
        )


def print_demand(results):
    first = results["demand"][0]
    print(
        f"\nExperts on demand: {first['size']}, fp32, one thread, {first['images']} different images, which chose "
        f"{len(first['experts_used'])} experts; the file has {mebibytes(first['file_bytes'])} MiB. "
        "In brackets: its time / with all."
    )
    rounds.header("columns kept", "ms an image", "resident (Pss), MiB", "peak, MiB")
    for row in results["demand"]:
        rounds.row(
            row["kept"],
            f"{milliseconds(row['seconds'])}, {brackets(row['ratio'])}",
            mebibytes(row["pss_bytes"]),
            mebibytes(row["peak_bytes"]),
        )


def print_tables(results):
    settings = results["settings"]
    print(f"{results['machine']}; {results['environment']['started']}, commit {results['commit'] or 'unknown'}")
    print(
        f"ViT of patch {settings['patch']} at {settings['side']} pixels, ms (medians); "
        "in brackets: ours / other of the same type,"
    )
    print(rounds.interval_note(settings["rounds"]))
    print_times(results)
    if results["starts"]:
        print_starts(results)
    if results["demand"]:
        print_demand(results)
    for warning in results["warnings"]:
        print(f"\n{warning}")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print_tables(json.load(file))
