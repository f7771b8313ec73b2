"""The learning rates of a training with the recipe `deit`, as its log has them, against timm's CosineLRScheduler at every epoch."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import peer_timm  # noqa: E402
import torch  # noqa: E402

if peer_timm.import_timm() is None:
    print("needs timm (pip install --no-deps timm==1.0.31)")
    sys.exit(77)
from timm.scheduler import CosineLRScheduler  # noqa: E402

CONFIG = """
[run]
threads = 1

[data]
name = "glyphs"
classes = 2
side = 16
train = 8
validation = 2
test = 2

[loader]
batch = 4
workers = 0

[model]
width = 4
depth = 1
heads = 1

[optimizer]
lr = {rate}

[train]
recipe = "deit"
epochs = {epochs}
log_every = 1
eval_every = 1000000
checkpoint_minutes = 0
"""


def logged_rates(rate, epochs):
    """One for each step."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "config.toml")
        config.write_text(CONFIG.format(rate=rate, epochs=epochs))
        done = subprocess.run([os.environ["SPARSIGHT_PROGRAM"], "train", config, "--out", f"{folder}/run", "--quiet"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lines = map(json.loads, pathlib.Path(folder, "run/metrics.jsonl").read_text().splitlines())
        return [line["lr"] for line in lines if line["kind"] == "train"]


class Schedule(unittest.TestCase):
    def test_deit(self):
        for rate, epochs in ((1e-3, 300), (2.5e-4, 50)):
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)
            scheduler = CosineLRScheduler(optimizer, t_initial=epochs, lr_min=1e-5, warmup_t=5, warmup_lr_init=1e-6)
            expected = []
            for epoch in range(epochs):
                scheduler.step(epoch)
                expected += 2 * [optimizer.param_groups[0]["lr"]]  # two batches of four of eight images
            ours = logged_rates(rate, epochs)
            self.assertEqual(len(ours), len(expected))
            for step, (mine, theirs) in enumerate(zip(ours, expected)):
                self.assertAlmostEqual(mine, theirs, delta=1e-12, msg=f"step {step}")


if __name__ == "__main__":
    unittest.main()
