"""Ranks of a benchmark's group are not taken for other people's processes: what all of them do counts as ours."""
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
import rounds  # noqa: E402
from dist import Ranks  # noqa: E402

# Rank 0 answers each line; the other one works until its input ends.
RANK = """
import os, sys, threading
print("{}", flush=True)
if os.environ["RANK"] == "0":
    for line in sys.stdin:
        print("{}", flush=True)
else:
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        pass
"""


def own_ticks(pids, ranks):
    """What an observer counts as the processes' own while the ranks answer some lines."""
    watch = rounds.Interference(pids)
    before = watch._now()["own"]
    for _ in range(20000):
        ranks.ask("1")
    return watch._now()["own"] - before


def main():
    with tempfile.TemporaryDirectory() as folder:
        ranks = Ranks([sys.executable, "-c", RANK], 2, pathlib.Path(folder), 1)
        pids = ranks.pids()
        with_other, without = own_ticks(pids, ranks), own_ticks([ranks.pid], ranks)
        ranks.others[0].stdin.close()
        ranks.close()
    assert len(set(pids)) == 2 and pids[0] == ranks.pid, pids
    assert with_other > without, (with_other, without)
    return 0


if __name__ == "__main__":
    sys.exit(main())
