"""Training on several hosts, which are network namespaces of this machine, has the same bits as one process, also over a
slow and lossy network. A link that is cut, and another configuration, are errors in one line that name the rank.
Skipped where it is not root, or where `ip` or the build's gloo is missing."""
import os
import pathlib
import shutil
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

    def start(self, command, port):
        """A rank on each host."""
        ranks = []
        for i, name in enumerate(self.names):
            environment = {**os.environ, "RANK": str(i), "WORLD_SIZE": str(HOSTS), "MASTER_ADDR": "10.213.7.1",
                           "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "eth0",
                           "SPARSIGHT_DIST_TIMEOUT": str(TIMEOUT)}
            ranks.append(subprocess.Popen(["ip", "netns", "exec", name, *command(i)], env=environment, text=True,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        return ranks


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
    saved = folder / "cut/checkpoints/last.safetensors"
    end = time.monotonic() + 60
    while not saved.exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert saved.exists(), "it did not begin"
    ip("link", "set", f"{hosts.bridge}v2", "down")
    start = time.monotonic()
    codes, said = wait(ranks, 20 * TIMEOUT)
    ip("link", "set", f"{hosts.bridge}v2", "up")
    assert codes == [1] * HOSTS, (codes, said)
    assert time.monotonic() - start < 10 * TIMEOUT
    for rank, text in enumerate(said):
        assert f"rank {rank} of {HOSTS}" in text and "lost its group" in text, text


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
            cut_link(hosts, folder)
    finally:
        hosts.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
