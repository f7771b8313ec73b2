// Entropies of the router's probabilities p = softmax(clean logits), in nats (the local and global entropy losses of
// LIMoE, Mustafa et al. 2022, section 2.2; mutual information as in Mod-Squad, Chen et al. 2023, section 3.2).
// Letters: moe/axes.md. All are undefined for a router without logits.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

// []: the mean over tokens of the entropy of p: 0 for routers that are sure, ln E for indifferent ones. Says nothing
// about balance.
at::Tensor entropy_loss(const Routing& routing);

// []: ln E - the entropy of the mean of p over tokens: 0 at balance, ln E with everything on one expert.
at::Tensor marginal_entropy_loss(const Routing& routing);

// []: ln E - the mutual information of token and expert, the sum of the two above: 0 for routers that are sure of each
// token and balanced; ln E where the expert says nothing about the token.
at::Tensor mutual_information_loss(const Routing& routing);

}  // namespace sparsight
