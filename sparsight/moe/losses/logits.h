// Losses of the logits alone. All are undefined for a router without logits. Letters: moe/axes.md.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// Entropies of the router's probabilities p = softmax(clean logits), in nats, with H(q) = -sum_e q_e ln q_e and <> the
// mean over tokens: <H(p)>, H(<p>), and their difference, the mutual information of token and expert.
// Mustafa et al. 2022, "Multimodal Contrastive Learning with LIMoE", section 2.2: the local loss <H(p)> and the global
// loss -H(<p>) of one modality. Chen et al. 2023, "Mod-Squad", section 3.2: the mutual information sum over t and e of
// P(t,e) ln (P(t,e) / (P(t) P(e))).
// Differs from the paper: in Mod-Squad t is a task, here a token, with P(t) = 1/N and P(e|t) = p_te.
// All are undefined for a router without logits.

// []: <H(p)>: 0 if the router is certain, ln E if uniform. Does not depend on balance.
at::Tensor entropy_loss(const Routing& routing);

// []: ln E - H(<p>): 0 at balance, ln E with everything on one expert.
at::Tensor marginal_entropy_loss(const Routing& routing);

// []: ln E - (H(<p>) - <H(p)>), the sum of the two above: 0 if the router is certain of each token and balanced; ln E
// if experts and tokens are independent.
at::Tensor mutual_information_loss(const Routing& routing);

// The router z-loss of ST-MoE (Zoph et al. 2022, equation 5): keeps logits small.

// []: the mean over tokens of logsumexp(clean logits)². Does not depend on balance; (ln E)² for logits of 0. Undefined
// for a router without logits.
at::Tensor router_z_loss(const Routing& routing);

}  // namespace sparsight
