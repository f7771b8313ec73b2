"""The balance losses by themselves, for routers of your own: plain functions of logits, gates and choices.

Letters: N tokens, E experts, K experts per token. All return a scalar and are differentiable once, in their logits, gates,
scores and noise scales. `sparsight.Router` computes the same ones: use these where the routing is not the library's.
"""
from ._library import ops


def _json(value):
    """As json.dumps, which torch.compile cannot trace."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {_json(entry)}' for key, entry in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


def _loss(name, like, *, k=1, experts=None, images=1, group_tokens=0, variants=None, **tensors):
    config = {"loss": name, "experts": experts if experts is not None else like.shape[1], "k": k,
              "group_tokens": group_tokens, "variants": variants or {}}
    return ops.routing_loss(_json(config), images, **tensors)


def importance(gate, expert, experts, *, unbiased=False):
    """CV² of the sums of chosen gates (Shazeer et al. 2017, section 4, equations 6 and 7). 0 at balance, E - 1 at worst.

    gate: [N,K]. expert: [N,K] int64. `unbiased`: variance divided by E - 1 instead of E.
    """
    return _loss("importance", gate, experts=experts, variants={"unbiased_variance": unbiased}, gate=gate, expert=expert)


def load(logits, noisy_logits, noise_scale, k, *, threshold_gradient=True, unbiased=False):
    """CV² of a smooth count of each expert's tokens (Shazeer et al. 2017, appendix A, equations 8 to 11). 0 at balance.

    logits: [N,E] before noise; noisy_logits: [N,E], what selection saw; noise_scale: [N,E] or [], standard deviation.
    `threshold_gradient`: let the gradient flow through the k-th largest noisy logit too.
    """
    return _loss("load", logits, k=k, variants={"threshold_gradient": threshold_gradient, "unbiased_variance": unbiased},
                 logits=logits, noisy_logits=noisy_logits, noise_scale=noise_scale)


def vmoe_importance(logits, *, group_tokens=0):
    """CV² of summed softmax(logits) (V-MoE, Riquelme et al. 2021, appendix A.2), the mean over groups. 0 at balance.

    logits: [N,E]. group_tokens: consecutive tokens that form a group; 0: all.
    """
    return _loss("vmoe_importance", logits, group_tokens=group_tokens, logits=logits)


def vmoe_load(logits, noisy_logits, noise_scale, k, *, group_tokens=0):
    """CV² of smooth token counts with one threshold per token (V-MoE, appendix A.2), the mean over groups. 0 at balance.

    Arguments as for `load` and `vmoe_importance`.
    """
    return _loss("vmoe_load", logits, k=k, group_tokens=group_tokens, logits=logits, noisy_logits=noisy_logits,
                 noise_scale=noise_scale)


def switch(logits, expert, *, counts="mean", form="switch", group_tokens=0):
    """E * sum over experts of (share of the tokens) * (mean probability), the mean over groups. 1 at balance, E at worst.

    GShard (Lepikhin et al. 2020, algorithm 1), Switch (Fedus et al. 2021, equations 4 to 6). logits: [N,E], those that
    selection saw. expert: [N,K] int64. counts: "first" choices (GShard, Switch), "mean" of all choices (Megatron-LM) or their
    "sum" (Flaxformer). form: "gshard" divides by E instead of multiplying, as printed in GShard.
    """
    return _loss("switch", logits, group_tokens=group_tokens, variants={"switch_counts": counts, "switch_form": form},
                 logits=logits, expert=expert)


def router_z(logits):
    """The mean squared logsumexp of the logits (ST-MoE, Zoph et al. 2022, equation 5). logits: [N,E]."""
    return _loss("router_z", logits, logits=logits)


def sequence_balance(scores, k, *, images=1):
    """Balance within each image (DeepSeek-V3, section 2.1.2, equations 17 to 20). 1 at balance.

    scores: [N,E], at least 0, N = images * tokens of each.
    """
    return _loss("sequence_balance", scores, k=k, images=images, scores=scores)


def superclass(logits, target):
    """Cross-entropy of softmax(logits) with given experts (Mobile V-MoE, Daxberger et al. 2023, section 3).

    logits: [N,E]; target: [B,E], rows that sum to 1; the N / B tokens of an image share a row.
    """
    return _loss("superclass", logits, images=target.shape[0], logits=logits, target=target)


def entropy(logits):
    """The mean over tokens of the entropy of softmax(logits), in nats (LIMoE, Mustafa et al. 2022). logits: [N,E]."""
    return _loss("entropy", logits, logits=logits)


def marginal_entropy(logits):
    """ln E minus the entropy of the mean of softmax(logits) (LIMoE). 0 at balance, ln E at worst. logits: [N,E]."""
    return _loss("marginal_entropy", logits, logits=logits)


def mutual_information(logits):
    """ln E minus the mutual information of token and expert (Mod-Squad, Chen et al. 2023, section 3.2). logits: [N,E]."""
    return _loss("mutual_information", logits, logits=logits)
