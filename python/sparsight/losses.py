"""The balance losses by themselves, for routers of your own: plain functions of logits, gates and choices.

Letters: N tokens, E experts, K experts per token, A assignments, B images. All return a scalar and are differentiable once, in
their logits, gates, scores, noise scales and thresholds. `sparsight.Router` computes the same ones: use these where the routing is
not the library's.

`expert` is [N,K] int64, or, of those that also know routings in which experts choose tokens, [A] with `token` [A]: a
`sparsight.Routing` has both. Expert -1 is no choice (GShard skips second ones) and counts in nothing.
`valid`, of each: [N] bool, False for padding, which counts in nothing.

Half types are computed in fp32, and so is the result; gradients have the type of what they are gradients of. fp64 stays.
Settings that do not fit (k, group_tokens, variants) are ValueErrors; shapes, types and indices RuntimeErrors.
"""
import json

import torch

from . import _checks
from ._library import ops


def names():
    """All losses: {name: what it is}. Each is a function of this module."""
    return json.loads(ops.list_losses())


def _json(value, name=""):
    """As json.dumps, which torch.compile cannot trace."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {_json(entry, key)}' for key, entry in value.items()) + "}"
    if isinstance(value, str):
        if not value.isidentifier():  # every text is a name: none needs an escape
            raise ValueError(f"{name} must be a name, got {value!r}")
        return f'"{value}"'
    if not isinstance(value, (bool, int, float, torch.SymInt)):
        value = getattr(value, "tolist", lambda: value)()  # NumPy's numbers
    if not isinstance(value, (bool, int, float, torch.SymInt)):
        raise ValueError(f"{name} must be a number, got {value!r}")
    _checks.in_range(name, value)
    return f"{value}".lower()  # str() of a size that may change is not traced either


def _loss(name, like, *, k=1, experts=None, images=1, group_tokens=0, variants=None, **tensors):
    if experts is None:
        if like.dim() != 2:
            raise RuntimeError(f"the loss {name} needs logits or scores [N,E], got the shape {list(like.shape)}")
        experts = like.shape[1]
    config = {"loss": name, "experts": experts, "k": k, "group_tokens": group_tokens, "variants": variants or {}}
    return ops.routing_loss(_json(config), images, **tensors)


def __getattr__(name):
    """A loss that has no function of its own here: all tensors and settings that a loss may need, by name."""
    if name.startswith("_") or name not in names():
        raise AttributeError(f"module {__name__} has no attribute {name!r}; the losses are {', '.join(names())}")

    def loss(**arguments):
        like = next((arguments[x] for x in ("logits", "scores", "gate") if arguments.get(x) is not None), None)
        if like is None:
            raise TypeError(f"the loss {name} needs logits, scores or gate")
        return _loss(name, like, **arguments)

    loss.__name__, loss.__doc__ = name, names()[name]
    return loss


def importance(gate, expert, experts, *, token=None, unbiased=False, valid=None):
    """CV² of the sums of chosen gates (Shazeer et al. 2017, section 4, equations 6 and 7). 0 at balance, E - 1 at worst.

    gate: of the shape of expert. expert: [N,K] int64, or [A] with token [A] int64, the token of each choice.
    `unbiased`: variance divided by E - 1 instead of E.
    """
    return _loss("importance", gate, experts=experts, variants={"unbiased_variance": unbiased}, gate=gate, expert=expert,
                 token=token, valid=valid)


def load(logits, noisy_logits, noise_scale, k, *, threshold_gradient=True, unbiased=False, valid=None):
    """CV² of a smooth count of each expert's tokens (Shazeer et al. 2017, appendix A, equations 8 to 11). 0 at balance.

    logits: [N,E] pre_activation noise; noisy_logits: [N,E], what selection saw; noise_scale: [N,E] or [], standard deviation.
    `threshold_gradient`: let the gradient flow through the k-th largest noisy logit too.
    """
    return _loss("load", logits, k=k, variants={"threshold_gradient": threshold_gradient, "unbiased_variance": unbiased},
                 logits=logits, noisy_logits=noisy_logits, noise_scale=noise_scale, valid=valid)


def vmoe_importance(logits, *, group_tokens=0, unbiased=False, valid=None):
    """CV² of summed softmax(logits) (V-MoE, Riquelme et al. 2021, appendix A.2), the mean over groups. 0 at balance.

    logits: [N,E]. group_tokens: consecutive tokens that form a group; 0: all. `unbiased`: as for `importance`.
    """
    return _loss("vmoe_importance", logits, group_tokens=group_tokens, variants={"unbiased_variance": unbiased}, logits=logits,
                 valid=valid)


def vmoe_load(logits, noisy_logits, noise_scale, k, *, group_tokens=0, of="logits", unbiased=False, valid=None):
    """CV² of smooth token counts with one threshold per token (V-MoE, appendix A.2), the mean over groups. 0 at balance.

    Arguments as for `load` and `vmoe_importance`. of: what is compared with the threshold, "logits" or "scores" (their
    softmax, as the library behind GMoE does: a defect, for comparison).
    """
    return _loss("vmoe_load", logits, k=k, group_tokens=group_tokens,
                 variants={"vmoe_load_of": of, "unbiased_variance": unbiased}, logits=logits, noisy_logits=noisy_logits,
                 noise_scale=noise_scale, valid=valid)


def switch(logits, expert, *, counts="mean", form="switch", group_tokens=0, valid=None):
    """E * sum over experts of (share of the tokens) * (mean probability), the mean over groups. 1 at balance, E at worst
    (counts "mean": E / K; "sum": from K to E).

    GShard (Lepikhin et al. 2020, algorithm 1), Switch (Fedus et al. 2021, equations 4 to 6). logits: [N,E], those that
    selection saw. expert: [N,K] int64. counts: "first" choices (GShard, Switch), "mean" of all choices (Megatron-LM) or their
    "sum" (Flaxformer). form: "gshard" divides by E instead of multiplying, as printed in GShard.
    """
    return _loss("switch", logits, group_tokens=group_tokens, variants={"switch_counts": counts, "switch_form": form},
                 logits=logits, expert=expert, valid=valid)


def router_z(logits, *, valid=None):
    """The mean squared logsumexp of the logits (ST-MoE, Zoph et al. 2022, equation 5). logits: [N,E]."""
    return _loss("router_z", logits, logits=logits, valid=valid)


def threshold(scores, threshold, expert, *, token=None, score_gradient=False, valid=None):
    """How far thresholds are from a strictly balanced choice (Shazeer et al. 2017, appendix F, equation 20). 0 where both agree.

    The sum over tokens and experts of (exceeds - chosen) * (score - threshold), where a score exceeds its expert's threshold or
    not. The derivative to a threshold is (rows chosen) - (rows that exceed it). scores: [N,E]; threshold: [E]; expert: [N,K]
    int64, or [A] with token [A]: the choice of training. `score_gradient`: let it flow into the scores too (the paper does not
    say). Of gating on two levels the loss is the sum of both levels':

        token, group = r.group_chosen.nonzero(as_tuple=True)
        loss = threshold(r.scores, router.threshold, r.expert, token=r.token)
        loss += threshold(r.group_scores, router.group_threshold, group, token=token)
    """
    return _loss("threshold", scores, variants={"threshold_score_gradient": score_gradient}, scores=scores,
                 threshold=threshold, expert=expert, token=token, valid=valid)


def sequence_balance(scores, k, *, images=1, valid=None):
    """Balance within each image (DeepSeek-V3, section 2.1.2, equations 17 to 20). 1 at balance.

    scores: [N,E], at least 0, N = images * tokens of each.
    """
    return _loss("sequence_balance", scores, k=k, images=images, scores=scores, valid=valid)


def superclass(logits, target, *, valid=None):
    """Cross-entropy of softmax(logits) with given experts (Mobile V-MoE, Daxberger et al. 2023, section 3).

    logits: [N,E]; target: [B,E], rows that sum to 1; the N / B tokens of an image share a row.
    """
    return _loss("superclass", logits, images=target.shape[0], logits=logits, target=target, valid=valid)


def separation(logits, target, *, valid=None):
    """Minus the scores that experts give images of their own class, plus those of their partner's class (pMoE, Chowdhury et al.
    2023, equation 6): the mean over images of -sum over experts of (target_e - target_partner) * (sum of the image's logits_e).

    Partners are experts 0 and 1, 2 and 3, ...; of an odd number the last one's is 0. logits: [N,E]; target: [B,E] as for
    `superclass`. Linear in the logits: it has no lower bound.
    """
    return _loss("separation", logits, images=target.shape[0], logits=logits, target=target, valid=valid)


def entropy(logits, *, valid=None):
    """The mean over tokens of the entropy of softmax(logits), in nats (LIMoE, Mustafa et al. 2022). logits: [N,E]."""
    return _loss("entropy", logits, logits=logits, valid=valid)


def marginal_entropy(logits, *, valid=None):
    """ln E minus the entropy of the mean of softmax(logits) (LIMoE). 0 at balance, ln E at worst. logits: [N,E]."""
    return _loss("marginal_entropy", logits, logits=logits, valid=valid)


def mutual_information(logits, *, valid=None):
    """ln E minus the mutual information of token and expert (Mod-Squad, Chen et al. 2023, section 3.2). logits: [N,E]."""
    return _loss("mutual_information", logits, logits=logits, valid=valid)
