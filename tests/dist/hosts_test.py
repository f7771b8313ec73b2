"""Training on several hosts, which are network namespaces of this machine, has the same bits as one process, also over
a slow and lossy network. A link that is cut, a rank that is killed or hangs, another configuration or run, a wrong
address, a port in use and a full disk are errors in one line that name the rank. Skipped where it is not root, or where `ip` or the build's gloo is
missing."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from collectives import build_has_gloo

PROGRAM = pathlib.Path(os.environ["SPARSIGHT_PROGRAM"]).resolve()
HOSTS = 3
TIMEOUT = 6  # seconds that a rank may be late
CONFIG = """
[run]
threads = 1
[data]
name = "glyphs"
classes = 4
side = 16
train = 192
validation = 48
test = 48
[loader]
batch = 16
[model]
name = "vit"
width = 32
depth = 2
heads = 2
patch = 4
[moe]
blocks = [-1]
experts = 4
[train]
epochs = 1
"""


def ip(*words, check=True):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=check)


class Hosts:
    """Namespaces on one bridge."""

    def __init__(self):
        self.names = [f"sparsight{os.getpid()}h{i}" for i in range(HOSTS)]
        self.bridge = f"spb{os.getpid() % 10000}"
        ip("link", "add", self.bridge, "type", "bridge")
        ip("link", "set", self.bridge, "up")
        for i, name in enumerate(self.names):
            ip("netns", "add", name)
            ip("link", "add", f"{self.bridge}v{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{self.bridge}v{i}", "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"10.213.7.{i + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def close(self):
        for name in self.names:
            ip("netns", "delete", name, check=False)
        ip("link", "delete", self.bridge, check=False)

    def start_rank(self, rank, command, port, variables=None):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(HOSTS), "MASTER_ADDR": "10.213.7.1",
                       "MASTER_PORT": str(port), "SPARSIGHT_RUN_TOKEN": f"run {port}",
                       "SPARSIGHT_DIST_TIMEOUT": str(TIMEOUT), **(variables or {})}
        return subprocess.Popen(["ip", "netns", "exec", self.names[rank], *command], env=environment, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def start(self, command, port, variables=lambda rank: {}):
        """A rank on each host."""
        return [self.start_rank(rank, command(rank), port, variables(rank)) for rank in range(HOSTS)]

    def listening(self, rank):
        """The addresses on which the processes of a host listen."""
        done = subprocess.run(["ip", "netns", "exec", self.names[rank], "ss", "-ltnH"], capture_output=True, text=True,
                              check=True)
        return [line.split()[3] for line in done.stdout.splitlines()]


def wait(ranks, seconds=120):
    """(exit codes, what each printed)."""
    end = time.monotonic() + seconds
    said = [rank.communicate(timeout=max(1, end - time.monotonic()))[1] for rank in ranks]
    return [rank.returncode for rank in ranks], said


def tensors(run):
    content = (run / "checkpoints/last.safetensors").read_bytes()
    return content[8 + int.from_bytes(content[:8], "little"):]


def train(folder, out, *more):
    return [str(PROGRAM), "train", str(folder / "config.toml"), "--out", str(folder / out), *more]


def same_bits(hosts, folder):
    subprocess.run(train(folder, "one", "--set", f"train.accumulate={HOSTS}"), check=True, capture_output=True)
    codes, said = wait(hosts.start(lambda i: train(folder, "hosts"), 29611))
    assert codes == [0] * HOSTS, said
    assert tensors(folder / "hosts") == tensors(folder / "one"), "several hosts have other bits"
    discipline = ["dev", "eth0", "root", "netem", "delay", "20ms", "loss", "1%"]
    inside = ["ip", "netns", "exec", hosts.names[1]]
    if subprocess.run([*inside, "tc", "qdisc", "add", *discipline], capture_output=True).returncode != 0:
        print("no netem here: not run over a slow network")
        return
    codes, said = wait(hosts.start(lambda i: train(folder, "slow"), 29612), 300)
    subprocess.run([*inside, "tc", "qdisc", "delete", *discipline[:3]], check=True)
    assert codes == [0] * HOSTS, said
    assert tensors(folder / "slow") == tensors(folder / "one"), "a slow network changes bits"


def cut_link(hosts, folder):
    endless = ["--set", "train.epochs=10000", "--set", "train.checkpoint_every=5"]
    ranks = hosts.start(lambda i: train(folder, "cut", *endless), 29613)
    started(folder / "cut/checkpoints/last.safetensors")
    ip("link", "set", f"{hosts.bridge}v2", "down")
    start = time.monotonic()
    codes, said = wait(ranks, 20 * TIMEOUT)
    ip("link", "set", f"{hosts.bridge}v2", "up")
    assert codes == [1] * HOSTS, (codes, said)
    assert time.monotonic() - start < 10 * TIMEOUT
    for rank in (0, 1):
        check_lost(said[rank], rank, 2)
    assert f"rank 2 of {HOSTS}" in said[2] and "lost its group" in said[2], said[2]


def check_lost(said, rank, other):
    """What a rank says when it has lost its group in the training: who and where it is, at which step, and who is to
    blame."""
    host = re.escape(socket.gethostname())
    assert re.search(rf"rank {rank} of {HOSTS} \({host}\) lost its group at step [1-9][0-9]*: "
                     rf"(rank \d \({host}\) or )?rank {other} \({host}\)( or rank \d \({host}\))? has ended, "
                     "cannot be reached or is late: ", said), said


def lost_rank(hosts, folder, number, port):
    """Rank 1 is killed or stopped in the middle of a training."""
    out = f"signal{number}"
    endless = ["--set", "train.epochs=10000", "--set", "train.checkpoint_every=5"]
    ranks = hosts.start(lambda i: train(folder, out, *endless), port)
    started(folder / out / "checkpoints/last.safetensors")
    ranks[1].send_signal(number)
    codes, said = wait([ranks[0], ranks[2]], 20 * TIMEOUT)
    ranks[1].kill()
    ranks[1].communicate()
    assert codes == [1, 1], (codes, said)
    for rank, text in zip((0, 2), said):
        check_lost(text, rank, 1)


def started(path):
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert path.exists(), f"{path} does not appear"


def strangers(hosts, folder):
    """Ranks listen on the run's network alone; a process of another run is sent away, and disturbs nobody."""
    port = 29615
    endless = ["--set", "train.epochs=10000", "--set", "train.checkpoint_every=5"]
    ranks = hosts.start(lambda i: train(folder, "run", *endless), port)
    saved = folder / "run/checkpoints/last.safetensors"
    started(saved)
    for rank in range(HOSTS):
        listening = hosts.listening(rank)
        assert listening and all(address.startswith(f"10.213.7.{rank + 1}:") for address in listening), listening
        assert (f"10.213.7.1:{port}" in listening) == (rank == 0), listening
    stranger = hosts.start_rank(1, train(folder, "other"), port, {"SPARSIGHT_RUN_TOKEN": "another"})
    said = stranger.communicate(timeout=60)[1]
    assert stranger.returncode == 1 and "rank 0 there belongs to another run" in said, said
    seen = saved.stat().st_mtime_ns
    end = time.monotonic() + 60
    while saved.stat().st_mtime_ns == seen and time.monotonic() < end:
        time.sleep(0.1)
    assert saved.stat().st_mtime_ns != seen, "a stranger has stopped the run"
    for rank in ranks:
        assert rank.poll() is None
    for rank in ranks:
        rank.send_signal(signal.SIGINT)
    codes, said = wait(ranks)
    assert codes == [1] * HOSTS, (codes, said)


def ends(ranks, *expected):
    """Every rank ends in time with code 1, and with one line of error that has the texts expected of it."""
    begin = time.monotonic()
    codes, said = wait(ranks, 10 * TIMEOUT)
    assert codes == [1] * len(ranks), (codes, said)
    assert time.monotonic() - begin < 10 * TIMEOUT
    for rank, texts in enumerate(expected):
        errors = [line for line in said[rank].splitlines() if line.startswith("error: ")]
        assert len(errors) == 1, said[rank]
        for text in texts:
            assert text in errors[0], (text, errors[0])


def name(rank):
    return f"rank {rank} of {HOSTS} ("


def wrong_addresses(hosts, folder):
    command = lambda i: train(folder, "wrong")  # noqa: E731
    # One rank looks for the others where nobody is.
    nowhere = {"MASTER_ADDR": "10.213.7.99"}
    missing = f"rank 1 has not come within {TIMEOUT} s"
    ends(hosts.start(command, 29616, lambda i: nowhere if i == 1 else {}), [name(0), missing], [name(1), "10.213.7.99"],
         [name(2), missing])
    # All do.
    ends(hosts.start(command, 29617, lambda i: nowhere), [name(0), "10.213.7.99 (MASTER_ADDR) is none of this host"],
         [name(1), "10.213.7.99"], [name(2), "10.213.7.99"])
    # The port belongs to another program, which says nothing.
    listener = ["ip", "netns", "exec", hosts.names[0], sys.executable, "-c",
                "import socket, time; s = socket.create_server(('10.213.7.1', 29618)); print('ready', flush=True); "
                "time.sleep(600)"]
    other = subprocess.Popen(listener, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "ready\n"
        ends(hosts.start(command, 29618), [name(0), "port 29618 of 10.213.7.1 is in use; choose another MASTER_PORT"],
             [name(1), "what listens on port 29618"], [name(2), "what listens on port 29618"])
    finally:
        other.kill()
        other.wait()
    # A rank of another run.
    ends(hosts.start(command, 29619, lambda i: {"SPARSIGHT_RUN_TOKEN": "another"} if i == 2 else {}),
         [name(0), "rank 2 has not come"], [name(1), "rank 2 has not come"], [name(2), "belongs to another run"])


def full_disk(hosts, folder):
    """Rank 1 has no room for its checkpoints."""
    small = folder / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        print("no mounts here: no full disk")
        return
    try:
        ends(hosts.start(lambda i: train(folder, "full"), 29620, lambda i: {"TMPDIR": str(small)} if i == 1 else {}),
             [name(0), "lost its group"], [name(1), "No space left on device"], [name(2), "lost its group"])
    finally:
        subprocess.run(["umount", str(small)], check=True)


def mistakes(hosts, folder):
    other = lambda i: ["--set", f"optimizer.lr=0.00{i % 2 + 1}"]  # noqa: E731
    codes, said = wait(hosts.start(lambda i: train(folder, "other", *other(i)), 29614))
    assert codes == [1] * HOSTS, codes
    assert all("rank 1 was started with another configuration than rank 0" in text for text in said), said


def main():
    if os.geteuid() != 0 or not shutil.which("ip"):
        print("needs root and iproute2")
        return 77
    if not build_has_gloo(PROGRAM):
        return 77
    try:
        hosts = Hosts()
    except subprocess.CalledProcessError as error:
        print(f"no network namespaces here: {error.stderr.strip()}")
        return 77
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "config.toml").write_text(CONFIG)
            same_bits(hosts, folder)
            mistakes(hosts, folder)
            strangers(hosts, folder)
            wrong_addresses(hosts, folder)
            full_disk(hosts, folder)
            lost_rank(hosts, folder, signal.SIGKILL, 29621)
            lost_rank(hosts, folder, signal.SIGSTOP, 29622)
            cut_link(hosts, folder)
    finally:
        hosts.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
