"""What a router decided, as plain values."""
from typing import Dict, NamedTuple, Optional

import torch


class Routing(NamedTuple):
    """A list of A assignments (token, expert). Letters: N tokens, E experts, K experts per token.

    Of a router with a fixed K (all but `expert_choice`, `patch_choice` and the `balanced_` ones) A = N K and assignment
    `j * K + r` is token j's choice of rank r: `routing.expert.view(N, K)` is the usual matrix. A choice that the router did
    not make (GShard skips second choices; padding has none) has expert -1 and gate 0.
    """
    token: torch.Tensor  #: [A] int64, 0..N-1
    expert: torch.Tensor  #: [A] int64, 0..E-1; -1 for none
    rank: torch.Tensor  #: [A] int64, 0 for a token's (or an expert's) first choice
    gate: torch.Tensor  #: [A], weight of the expert's output; differentiable
    kept: torch.Tensor  #: [A] bool: made, and not dropped by the expert's capacity
    logits: torch.Tensor  #: [N,E] before noise; differentiable; [0,E] of routers without (hash, random, hierarchical, ...)
    scores: torch.Tensor  #: [N,E], the router's dense scores (softmax, sigmoid), noise included; differentiable; or [0,E]
    chosen_count: torch.Tensor  #: [E] int64, assignments of each expert before capacity
    valid: Optional[torch.Tensor]  #: [N] bool: False for padding; None: no padding
    losses: Dict[str, torch.Tensor]  #: balance losses by name, unweighted, []; differentiable
    loss: torch.Tensor  #: [], their weighted sum: add it to the training objective
    #: [N,G], the scores of the G groups of a router of two levels, its first level; differentiable; None of other routers
    group_scores: Optional[torch.Tensor] = None
    group_chosen: Optional[torch.Tensor] = None  #: [N,G] bool: the groups that took the token; None of other routers
    metrics: Dict[str, torch.Tensor] = {}  #: what the router itself reports, []: {"sparsity": ...} of relu; empty of most


class SoftRouting(NamedTuple):
    """What a router that mixes tokens decided. Letters: B images, S tokens of each, P = experts * slots.

    Slot p belongs to expert p // slots. There is nothing to balance: `losses` is empty and `loss` 0.
    """
    dispatch: torch.Tensor  #: [B,S,P] weights of the tokens in each slot; sum to 1 over the tokens
    combine: torch.Tensor  #: [B,S,P] weights of the slots in each token; sum to 1 over the slots
    logits: torch.Tensor  #: [B,S,P]
    losses: Dict[str, torch.Tensor]
    loss: torch.Tensor
