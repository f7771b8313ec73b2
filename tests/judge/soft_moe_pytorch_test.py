"""Compares a Soft MoE layer with that of the package soft-moe-pytorch on random tokens, in fp32. It normalises tokens and slots
with a learned RMS norm; the layer after that is the same."""
import importlib.util
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
if importlib.util.find_spec("soft_moe_pytorch") is None:
    print("needs soft-moe-pytorch (pip install --no-deps soft-moe-pytorch==0.1.9 einops)")
    sys.exit(77)
import support  # noqa: E402,F401  (finds the built package)
import torch  # noqa: E402
from soft_moe_pytorch import SoftMoE  # noqa: E402

import sparsight  # noqa: E402


class Layer(unittest.TestCase):
    def test_random_layers(self):
        torch.manual_seed(0)
        torch.set_grad_enabled(False)
        for _ in range(50):
            experts, slots, width, count = (int(torch.randint(1, high, ())) for high in (6, 4, 17, 33))
            theirs = SoftMoE(width, num_experts=experts, num_slots=slots, offload_unused_experts_to_cpu=False, is_distributed=False)
            ours = sparsight.MoEMLP(width, 4 * width, experts, router="soft_moe", slots=slots, normalize=False)
            ours.router.weight.copy_(theirs.slot_norm(theirs.slot_embeds).view(experts * slots, width))
            for e, expert in enumerate(theirs.experts.experts):
                first, last = (m for m in expert.modules() if isinstance(m, torch.nn.Linear))
                for name, value in (("w1", first.weight.t()), ("b1", first.bias), ("w2", last.weight.t()), ("b2", last.bias)):
                    getattr(ours.experts, name)[e].copy_(value)
            x = torch.randn(2, count, width)
            torch.testing.assert_close(ours(theirs.norm(x)), theirs(x), rtol=1e-4, atol=1e-5)
            mask = torch.rand(2, count) < 0.7
            mask[:, 0] = True
            both = ours(theirs.norm(x), valid=mask), theirs(x, mask=mask)
            torch.testing.assert_close(both[0][mask], both[1][mask], rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
