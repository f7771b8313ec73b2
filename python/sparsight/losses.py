"""The load balancing losses as functions of logits, gates and choices, for your own routers.

Letters: N tokens, E experts, K experts per token, A assignments, B images. All return a scalar and are differentiable
once with respect to logits, gates, scores, noise scales and thresholds. `sparsight.Router` computes the same losses;
use these functions if the routing is your own.

`expert` is [N,K] int64. Losses that are also defined if experts choose tokens accept [A] together with `token` [A], as
in a `sparsight.Routing`. Expert -1 means no choice (GShard skips second choices) and is ignored.
`valid`, of all losses: [N] bool, False for padding, which is ignored.

Half precision inputs are computed in fp32 and give an fp32 result; fp64 stays fp64. Gradients have the dtype of their
inputs. Invalid settings (k, group_tokens, variants) raise ValueError; wrong shapes, dtypes and indices raise
RuntimeError.
"""
import json

import torch

from . import _checks
from ._library import ops


def names():
    """All losses: {name: description}. Each is a function of this module."""
    return json.loads(ops.list_losses())


def _json(value, name=""):
    """A replacement for json.dumps, which torch.compile cannot trace."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {_json(entry, key)}' for key, entry in value.items()) + "}"
    if isinstance(value, str):
        if not value.isidentifier():  # all strings are names, so none needs escaping
            raise ValueError(f"{name} must be a name, got {value!r}")
        return f'"{value}"'
    if not isinstance(value, (bool, int, float, torch.SymInt)):
        value = getattr(value, "tolist", lambda: value)()  # NumPy's numbers
    if not isinstance(value, (bool, int, float, torch.SymInt)):
        raise ValueError(f"{name} must be a number, got {value!r}")
    _checks.in_range(name, value)
    return f"{value}".lower()  # str() of a dynamic size cannot be traced either


def _loss(name, like, *, k=1, experts=None, images=1, group_tokens=0, variants=None, **tensors):
    if experts is None:
        if like.dim() != 2:
            raise RuntimeError(f"the loss {name} needs logits or scores [N,E], got the shape {list(like.shape)}")
        experts = like.shape[1]
    config = {"loss": name, "experts": experts, "k": k, "group_tokens": group_tokens, "variants": variants or {}}
    return ops.routing_loss(_json(config), images, **tensors)


def __getattr__(name):
    """Losses without an explicit function in this module; they take all tensors and settings by keyword."""
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
    """CV² of each expert's sum of chosen gates (Shazeer et al. 2017, section 4, equations 6 and 7).

    0 at balance, at most E - 1.

    gate: same shape as expert. expert: [N,K] int64, or [A] with token [A] int64, the token of each choice.
    `unbiased`: variance divided by E - 1 instead of E.
    """
    return _loss("importance", gate, experts=experts, variants={"unbiased_variance": unbiased}, gate=gate, expert=expert,
                 token=token, valid=valid)


def load(logits, noisy_logits, noise_scale, k, *, threshold_gradient=True, unbiased=False, valid=None):
    """CV² of a smooth estimate of each expert's token count (Shazeer et al. 2017, appendix A, equations 8 to 11).

    0 at balance.

    logits: [N,E] before noise; noisy_logits: [N,E], used for selection; noise_scale: [N,E] or [], standard deviation.
    `threshold_gradient`: let the gradient flow through the k-th largest noisy logit too.
    """
    return _loss("load", logits, k=k, variants={"threshold_gradient": threshold_gradient, "unbiased_variance": unbiased},
                 logits=logits, noisy_logits=noisy_logits, noise_scale=noise_scale, valid=valid)


def vmoe_importance(logits, *, group_tokens=0, unbiased=False, valid=None):
    """CV² of each expert's sum of softmax(logits), averaged over groups (V-MoE, Riquelme et al. 2021, appendix A.2).

    0 at balance.

    logits: [N,E]. group_tokens: number of consecutive tokens per group; 0: one group. `unbiased`: as for `importance`.
    """
    return _loss("vmoe_importance", logits, group_tokens=group_tokens, variants={"unbiased_variance": unbiased}, logits=logits,
                 valid=valid)


def vmoe_load(logits, noisy_logits, noise_scale, k, *, group_tokens=0, of="logits", unbiased=False, valid=None):
    """CV² of smooth token counts with one threshold per token, averaged over groups (V-MoE, appendix A.2).

    0 at balance.

    Arguments as for `load` and `vmoe_importance`. of: the values compared with the threshold, "logits" or "scores"
    (their softmax, which reproduces a defect of the library used by GMoE, for comparison).
    """
    return _loss("vmoe_load", logits, k=k, group_tokens=group_tokens,
                 variants={"vmoe_load_of": of, "unbiased_variance": unbiased}, logits=logits, noisy_logits=noisy_logits,
                 noise_scale=noise_scale, valid=valid)


def switch(logits, expert, *, counts="mean", form="switch", group_tokens=0, valid=None):
    """E * sum over experts of (fraction of the tokens) * (mean probability), averaged over groups. 1 at balance, at
    most E (counts "mean": at most E / K; "sum": K to E).

    GShard (Lepikhin et al. 2020, algorithm 1), Switch (Fedus et al. 2021, equations 4 to 6). logits: [N,E], those
    used for selection. expert: [N,K] int64. counts: "first" choices (GShard, Switch), "mean" of all choices
    (Megatron-LM) or their "sum" (Flaxformer). form: "gshard" divides by E instead of multiplying, as printed in GShard.
    """
    return _loss("switch", logits, group_tokens=group_tokens, variants={"switch_counts": counts, "switch_form": form},
                 logits=logits, expert=expert, valid=valid)


def router_z(logits, *, valid=None):
    """The mean squared logsumexp of the logits (ST-MoE, Zoph et al. 2022, equation 5). logits: [N,E]."""
    return _loss("router_z", logits, logits=logits, valid=valid)


def threshold(scores, threshold, expert, *, token=None, score_gradient=False, valid=None):
    """Mismatch between thresholds and a strictly balanced choice (Shazeer et al. 2017, appendix F, equation 20).

    0 if they agree.

    The sum over tokens and experts of (exceeds - chosen) * (score - threshold), where exceeds is 1 if the score is
    above the expert's threshold and 0 otherwise. The gradient of a threshold is (tokens chosen) - (tokens above it).
    scores: [N,E]; threshold: [E]; expert: [N,K] int64, or [A] with token [A]: the choice in training. `score_gradient`:
    let the gradient flow into the scores too (the paper does not say). For two-level gating the loss is the sum over
    both levels:

        token, group = r.group_chosen.nonzero(as_tuple=True)
        loss = threshold(r.scores, router.threshold, r.expert, token=r.token)
        loss += threshold(r.group_scores, router.group_threshold, group, token=token)
    """
    return _loss("threshold", scores, variants={"threshold_score_gradient": score_gradient}, scores=scores,
                 threshold=threshold, expert=expert, token=token, valid=valid)


def sequence_balance(scores, k, *, images=1, valid=None):
    """Balance within each image (DeepSeek-V3, section 2.1.2, equations 17 to 20). 1 at balance.

    scores: [N,E], non-negative, N = images * tokens per image.
    """
    return _loss("sequence_balance", scores, k=k, images=images, scores=scores, valid=valid)


def superclass(logits, target, *, valid=None):
    """Cross-entropy between softmax(logits) and target experts (Mobile V-MoE, Daxberger et al. 2023, section 3).

    logits: [N,E]; target: [B,E], rows sum to 1; all N / B tokens of an image share a row.
    """
    return _loss("superclass", logits, images=target.shape[0], logits=logits, target=target, valid=valid)


def separation(logits, target, *, valid=None):
    """Minus the logits that experts give images of their own class, plus those for their partner's class (pMoE,
    Chowdhury et al. 2023, equation 6): the mean over images of -sum over experts of (target_e - target_partner) * (sum
    of the image's logits_e).

    Experts are paired 0 and 1, 2 and 3, ...; the last of an odd number is paired with expert 0. logits: [N,E];
    target: [B,E] as for `superclass`. Linear in the logits, so it has no lower bound.

    Differs from the paper: the mean is over all images, not over those of the pair.
    """
    return _loss("separation", logits, images=target.shape[0], logits=logits, target=target, valid=valid)


def entropy(logits, *, valid=None):
    """The mean over tokens of the entropy of softmax(logits), in nats (LIMoE, Mustafa et al. 2022). logits: [N,E]."""
    return _loss("entropy", logits, logits=logits, valid=valid)


def marginal_entropy(logits, *, valid=None):
    """ln E minus the entropy of the mean of softmax(logits) (LIMoE). 0 at balance, at most ln E. logits: [N,E]."""
    return _loss("marginal_entropy", logits, logits=logits, valid=valid)


def mutual_information(logits, *, valid=None):
    """ln E minus the mutual information of token and expert (Mod-Squad, Chen et al. 2023, section 3.2).

    logits: [N,E].
    """
    return _loss("mutual_information", logits, logits=logits, valid=valid)
