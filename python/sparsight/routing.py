"""The outputs of routers, as named tuples."""
from typing import Dict, NamedTuple, Optional

import torch


class Routing(NamedTuple):
    """A list of A assignments (token, expert). Letters: N tokens, E experts, K experts per token.

    With a fixed K (all routers but `expert_choice`, `patch_choice` and the `balanced_` ones) A = N K, and assignment
    `j * K + r` is token j's choice of rank r: `routing.expert.view(N, K)` is the usual matrix of top-k indices. Choices
    that are not made (skipped second choices of GShard, padding) have expert -1 and gate 0.
    """
    token: torch.Tensor  #: [A] int64, 0..N-1
    expert: torch.Tensor  #: [A] int64, 0..E-1; -1 for none
    rank: torch.Tensor  #: [A] int64, 0 for a token's (or an expert's) first choice
    gate: torch.Tensor  #: [A] weight of the expert's output; differentiable
    kept: torch.Tensor  #: [A] bool: True if the choice was made and not dropped by the expert's capacity
    logits: torch.Tensor  #: [N,E] before noise; differentiable; [0,E] for routers without (hash, random, hierarchical, ...)
    scores: torch.Tensor  #: [N,E] dense scores (softmax, sigmoid) with noise; differentiable; [0,E] for routers without
    chosen_count: torch.Tensor  #: [E] int64, number of assignments of each expert before capacity
    valid: Optional[torch.Tensor]  #: [N] bool: False for padding; None: no padding
    losses: Dict[str, torch.Tensor]  #: load balancing losses by name, unweighted, []; differentiable
    loss: torch.Tensor  #: [], their weighted sum: add it to the training loss
    #: [N,G] scores of the G expert groups, first level of a two-level router; differentiable; None for other routers
    group_scores: Optional[torch.Tensor] = None
    group_chosen: Optional[torch.Tensor] = None  #: [N,G] bool: groups chosen for the token; None for other routers
    metrics: Dict[str, torch.Tensor] = {}  #: the router's own metrics, []: {"sparsity": ...} for relu; usually empty


class SoftRouting(NamedTuple):
    """The output of a router that mixes tokens. Letters: B images, S tokens per image, P = experts * slots.

    Slot p belongs to expert p // slots. Needs no load balancing: `losses` is empty and `loss` is 0.
    """
    dispatch: torch.Tensor  #: [B,S,P] weights of the tokens in each slot; sum to 1 over the tokens
    combine: torch.Tensor  #: [B,S,P] weights of the slots in each token; sum to 1 over the slots
    logits: torch.Tensor  #: [B,S,P]
    losses: Dict[str, torch.Tensor]
    loss: torch.Tensor
