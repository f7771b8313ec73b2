"""Inputs for every balance loss, by name."""
from unittest import mock

import support  # noqa: F401
import torch

from sparsight import losses

N, E, K, B = 6, 4, 2, 2


def cases(dtype):
    """{loss: [(function, the tensors that it takes and is differentiable in), ...]}."""
    def leaf(*shape):
        return torch.randn(*shape, dtype=dtype)

    logits, noise, scale = leaf(N, E), leaf(N, E), torch.rand(N, E, dtype=dtype) + 0.5
    gate, expert = torch.rand(N, K, dtype=dtype), torch.rand(N, E).topk(K, dim=1).indices
    skipped = expert.clone()
    skipped[2, 1] = skipped[3] = -1
    token, of_expert = torch.tensor([0, 3, 3, 5, 1, 0, 4, 5]), torch.arange(E).repeat_interleave(2)  # two tokens each
    valid = torch.arange(N) < 5
    target = torch.rand(B, E, dtype=dtype).softmax(1)

    def of_logits(loss):
        return [(loss, (logits,)), (lambda x: loss(x, valid=valid), (logits,))]

    all_cases = {
        "importance": [(lambda g: losses.importance(g, expert, E), (gate,)),
                       (lambda g: losses.importance(g, skipped, E, unbiased=True, valid=valid), (gate,)),
                       (lambda g: losses.importance(g, of_expert, E, token=token, valid=valid), (gate.reshape(-1)[:8],))],
        "load": [(lambda x, s: losses.load(x, x + noise * s, s, K), (logits, scale)),
                 (lambda x, s: losses.load(x, x + noise * s, s, K, unbiased=True, valid=valid), (logits, scale[0, 0]))],
        "vmoe_importance": of_logits(losses.vmoe_importance)
        + [(lambda x: losses.vmoe_importance(x, group_tokens=3), (logits,))],
        "vmoe_load": [(lambda x, s: losses.vmoe_load(x, x + noise * s, s, K), (logits, scale)),
                      (lambda x, s: losses.vmoe_load(x, x + noise * s, s, K, group_tokens=3, valid=valid), (logits, scale))],
        "switch": [(lambda x: losses.switch(x, expert), (logits,)),
                   (lambda x: losses.switch(x, skipped, counts="first", valid=valid), (logits,)),
                   (lambda x: losses.switch(x, skipped, counts="sum", form="gshard", group_tokens=3), (logits,))],
        "router_z": of_logits(losses.router_z),
        "threshold": [(lambda t: losses.threshold(logits, t, of_expert, token=token), (leaf(E),)),
                      (lambda s, t: losses.threshold(s, t, skipped, score_gradient=True, valid=valid), (logits, leaf(E)))],
        "sequence_balance": [(lambda x: losses.sequence_balance(x.sigmoid(), K, images=B), (logits,)),
                             (lambda x: losses.sequence_balance(x.sigmoid(), K, images=B, valid=valid), (logits,))],
        "superclass": of_logits(lambda x, **options: losses.superclass(x, target, **options)),
        "separation": of_logits(lambda x, **options: losses.separation(x, target, **options)),
        "entropy": of_logits(losses.entropy),
        "marginal_entropy": of_logits(losses.marginal_entropy),
        "mutual_information": of_logits(losses.mutual_information),
    }
    for name in losses.names():  # those without a function of their own take everything by its name
        if name not in all_cases:
            of = getattr(losses, name)
            all_cases[name] = [(lambda x, of=of: of(logits=x, noisy_logits=x, scores=x.softmax(1), expert=expert, target=target,
                                                    images=B), (logits,))]
    return {name: [(run, [x.clone().requires_grad_() for x in inputs]) for run, inputs in each]
            for name, each in all_cases.items()}


def operator_call(run, inputs):
    """The arguments and keywords that the function passes to torch.ops.sparsight.routing_loss."""
    with mock.patch.object(losses, "ops") as ops:
        run(*inputs)
    arguments, keywords = ops.routing_loss.call_args
    return arguments, {name: x if x is None else x.detach().requires_grad_(x.requires_grad) for name, x in keywords.items()}
