"""Compares routers and losses with those of Hugging Face's transformers: Mixtral, Switch, NLLB (top 2 with batch priority) and
DeepSeek-V3, on random tokens in fp32."""
import importlib.util
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
if importlib.util.find_spec("transformers") is None:
    print("needs transformers (pip install transformers==5.24.0)")
    sys.exit(77)
import support  # noqa: E402,F401  (finds the built package)
import peer_torchvision  # noqa: E402
import torch  # noqa: E402

peer_torchvision.import_vision_transformer()  # transformers imports torchvision where there is one
from transformers.models.deepseek_v3 import configuration_deepseek_v3, modeling_deepseek_v3  # noqa: E402
from transformers.models.mixtral import configuration_mixtral, modeling_mixtral  # noqa: E402
from transformers.models.nllb_moe import configuration_nllb_moe, modeling_nllb_moe  # noqa: E402
from transformers.models.switch_transformers import configuration_switch_transformers, modeling_switch_transformers  # noqa: E402

import sparsight  # noqa: E402

LAYERS = 50


def same(a, b):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def dense(routing, experts):
    """[N,E]: the gates of what was kept."""
    made = routing.kept
    out = torch.zeros(int(routing.token.max()) + 1, experts)
    return out.index_put((routing.token[made], routing.expert[made]), routing.gate[made])


def to_dense(expert, gate, experts):
    return torch.zeros(len(expert), experts).scatter(1, expert, gate)


class Peers(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        torch.set_grad_enabled(False)

    def layers(self):
        """Random sizes: experts, K, width, tokens."""
        for _ in range(LAYERS):
            experts = int(torch.randint(2, 9, ()))
            k, width, count = (int(torch.randint(1, high, ())) for high in (experts + 1, 17, 33))
            yield experts, k, width + 1, torch.randn(count + 1, width + 1)

    def test_mixtral(self):
        for experts, k, width, x in self.layers():
            config = configuration_mixtral.MixtralConfig(hidden_size=width, num_local_experts=experts, num_experts_per_tok=k)
            theirs = modeling_mixtral.MixtralTopKRouter(config)
            theirs.weight.normal_()
            ours = sparsight.Router("softmax_topk", width, experts, k=k, noise=0.0, renormalize=True,
                                    losses={"switch": 1.0, "switch_counts": "sum"})
            ours.weight.copy_(theirs.weight)
            logits, gate, expert = theirs(x)
            routing = ours(x)
            same(routing.logits, logits)
            same(dense(routing, experts), to_dense(expert, gate, experts))
            same(routing.losses["switch"], modeling_mixtral.load_balancing_loss_func((logits,), experts, k))

    def test_switch(self):
        for experts, k, width, x in self.layers():
            config = configuration_switch_transformers.SwitchTransformersConfig(
                d_model=width, num_experts=experts, expert_capacity=k, router_jitter_noise=0.0)
            theirs = modeling_switch_transformers.SwitchTransformersTop1Router(config)
            theirs.classifier.weight.normal_()
            ours = sparsight.Router("switch_top1", width, experts, jitter=0.0, losses={"switch": 1.0, "router_z": 1.0},
                                    capacity={"factor": 1e-6, "minimum": k})
            ours.weight.copy_(theirs.classifier.weight)
            # Their capacity is a number of tokens in each sequence.
            kept, gate, logits = theirs(x[None])
            routing = ours(x)
            same(dense(routing, experts), (kept * gate)[0])
            same(routing.losses["router_z"], modeling_switch_transformers.router_z_loss_func(logits))
            probabilities = logits.softmax(-1)
            same(routing.losses["switch"],
                 modeling_switch_transformers.load_balancing_loss_func(probabilities, probabilities.argmax(-1)))

    def test_nllb(self):
        for priority in (False, True):
            for experts, _, width, x in self.layers():
                config = configuration_nllb_moe.NllbMoeConfig(
                    d_model=width, num_experts=experts, second_expert_policy="all", router_bias=False,
                    normalize_router_prob_before_dropping=True, batch_prioritized_routing=priority)
                config.hidden_size = width
                theirs = modeling_nllb_moe.NllbMoeTop2Router(config).train()
                theirs.classifier.weight.normal_()
                theirs.expert_capacity = None  # then it is 2 ceil(N / E)
                ours = sparsight.Router("gshard_top2", width, experts, second="all",
                                        capacity={"factor": 1.0, "rounding": "floor_per_choice",
                                                  "priority": "max_gate" if priority else "none"})
                ours.weight.copy_(theirs.classifier.weight)
                _, gates, _ = theirs(x)
                same(dense(ours(x), experts), gates)

    def test_deepseek_v3(self):
        for kept in (1, 2, 3, 4):
            for _, _, width, x in self.layers():
                groups, experts, k = 4, 16, 2 * kept  # their groups are scored by their two best experts: K = 2 for each kept one
                config = configuration_deepseek_v3.DeepseekV3Config(
                    hidden_size=width, n_routed_experts=experts, num_experts_per_tok=k, n_group=groups, topk_group=kept,
                    routed_scaling_factor=2.5, norm_topk_prob=True)
                theirs = modeling_deepseek_v3.DeepseekV3TopkRouter(config)
                theirs.weight.normal_()
                theirs.e_score_correction_bias.normal_(std=0.2)
                ours = sparsight.Router("sigmoid_bias", width, experts, k=k, scale=2.5, groups=groups, kept_groups=kept)
                ours.weight.copy_(theirs.weight)
                ours.bias.copy_(theirs.e_score_correction_bias)
                logits, gate, expert = theirs(x)
                routing = ours(x)
                same(routing.logits, logits)
                same(dense(routing, experts), to_dense(expert, gate, experts))


if __name__ == "__main__":
    unittest.main()
