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

    @property
    def kept_count(self):
        """[E] int64: number of assignments of each expert after capacity; `chosen_count` is the number before."""
        return torch.bincount(self.expert[self.kept], minlength=self.chosen_count.shape[0])

    @property
    def experts_per_token(self):
        """[] fp32: mean number of experts that a token chose, before capacity; padding does not count."""
        return _mean_experts(self.tokens_with)

    @property
    def kept_per_token(self):
        """[] fp32: mean number of experts that capacity left to a token."""
        return _mean_experts(self.tokens_with_kept)

    @property
    def tokens_with(self):
        """[E+1] int64: number of tokens with 0, 1, ..., E chosen experts, before capacity; padding does not count."""
        return self._histogram(self.expert >= 0)

    @property
    def tokens_with_kept(self):
        """[E+1] int64: number of tokens with 0, 1, ..., E experts left by capacity."""
        return self._histogram(self.kept)

    def _histogram(self, counted):
        per_token = self.token.new_zeros(self._token_count()).index_add(0, self.token, counted.to(torch.int64))
        if self.valid is not None:
            per_token = per_token[self.valid.reshape(-1)]
        return torch.bincount(per_token, minlength=self.chosen_count.shape[0] + 1)

    def _token_count(self):
        for rows in (self.logits, self.scores, self.group_scores):
            if rows is not None and rows.shape[0] > 0:
                return rows.shape[0]
        return int(self.token.max()) + 1 if self.token.numel() else 0  # every token of such routers has an assignment


def _mean_experts(tokens_with):
    number = torch.arange(tokens_with.shape[0], device=tokens_with.device)
    return (tokens_with * number).sum() / tokens_with.sum().clamp(min=1)


class SoftRouting(NamedTuple):
    """The output of a router that mixes tokens. Letters: B images, S tokens per image, P = experts * slots.

    Slot p belongs to expert p // slots. Needs no load balancing: `losses` is empty and `loss` is 0.
    """
    dispatch: torch.Tensor  #: [B,S,P] weights of the tokens in each slot; sum to 1 over the tokens
    combine: torch.Tensor  #: [B,S,P] weights of the slots in each token; sum to 1 over the slots
    logits: torch.Tensor  #: [B,S,P]
    losses: Dict[str, torch.Tensor]
    loss: torch.Tensor
