// Experts spread over the ranks of a group (Shazeer et al. 2017, section 3.1; GShard): rank r of R has experts r E / R
// .. (r + 1) E / R - 1 of a layer, and each rank routes tokens of its own. Letters: moe/axes.md.
#pragma once

#include "sparsight/dist/group.h"
#include "sparsight/moe/dispatch/dispatcher.h"

namespace sparsight {

// The dispatcher of a rank, whose `experts` are its own E / R. Rows travel to the experts' ranks and back: the numbers
// of rows of each expert first, then the rows; in the backward pass the same way with gradients. A rank without tokens,
// and an expert without rows, take part. run() and its backward pass are collective.
//
// Gradients of experts are sums over the rows of all ranks; with a loss that is a mean over ranks each rank divides its
// own by R before the backward pass, and they are not summed again (S32). group: dist::ExpertRanks::parts. With a
// dist::ExactParts the experts compute the rows of each rank by themselves, and the gradients are left there.
std::shared_ptr<Dispatcher> expert_parallel_dispatcher(dist::GroupPtr group);

// Raises UsageError unless each tensor of these experts is a parameter with one slice per expert. layer: its path.
void check_can_spread(const Experts& experts, const std::string& layer);

}  // namespace sparsight
