"""Statistics of times that were measured in the same rounds, as bench/measure/ has them in C++."""

import math
import os
import pathlib
import statistics


def median_interval(values):
    """(median, low, high, coverage): order statistics that cover the median with at least 95 %, if there are enough."""
    values, n = sorted(values), len(values)
    missed, chosen, coverage = 0.0, 1, max(0.0, 1 - 2 / 2**n)
    for i in range(1, n // 2 + 1):
        missed += 2 * math.comb(n, i - 1) / 2**n
        if 1 - missed >= 0.95:
            chosen, coverage = i, 1 - missed
    return statistics.median(values), values[chosen - 1], values[n - chosen], coverage


def ratio_text(ours, other):
    """Of ours / other, round by round: below 1 ours is faster."""
    median, low, high, _ = median_interval([a / b for a, b in zip(ours, other)])
    return f"{median:.2f} [{low:.2f}, {high:.2f}]"


def interval_note(rounds):
    coverage = median_interval(range(rounds))[3]
    return (
        f"{'95 %' if coverage >= 0.95 else 'widest'} interval of the median (order statistics of {rounds} rounds; "
        f"covers {100 * coverage:.1f} %)"
    )


def milliseconds(seconds):
    ms = 1e3 * seconds
    return f"{ms:.{3 if ms < 1 else 2 if ms < 10 else 1 if ms < 100 else 0}f}"


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def header(*columns):
    print()
    row(*columns)
    row(*["--:"] * len(columns))


class Interference:
    """Whether other processes ran since it was made; `processes` are ours. The limits are those of interference.h."""

    def __init__(self, processes=()):
        self.processes = [os.getpid(), *processes]
        self.before = self._now()

    def _now(self):
        user, nice, system, idle, io, irq, soft, steal = (
            int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
        )
        busy = user + nice + system + irq + soft
        own = running = delayed = 0
        for process in self.processes:
            try:
                fields = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
                own += sum(int(x) for x in fields[11:15])  # with children that have ended
                for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
                    times = (thread / "schedstat").read_text().split()
                    running, delayed = running + int(times[0]), delayed + int(times[1])
            except OSError:  # it has ended
                pass
        return {"stolen": steal, "busy": busy, "total": busy + idle + io + steal, "own": own, "run": running, "wait": delayed}

    def warning(self):
        now = self._now()
        d = {key: now[key] - self.before[key] for key in now}
        share = lambda part, whole: max(0.0, part / whole) if whole > 0 else 0.0  # noqa: E731
        stolen, waiting = share(d["stolen"], d["total"]), share(d["wait"], d["wait"] + d["run"])
        others = share(d["busy"] - d["own"], d["total"])
        if stolen <= 0.01 and waiting <= 0.02 and others <= 0.05:
            return ""
        return (
            "warning: other processes ran during the measurement: our threads waited for a core "
            f"{100 * waiting:.0f} % of their time, others used {100 * others:.0f} % of the cores' time, and the host took "
            f"{100 * stolen:.0f} %"
        )
