// Losses of the routing that attacks maximise. Letters: moe/axes.md.
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/routed/clean_pass.h"

namespace sparsight {

// What an attack on the routing maximises, summed over the layers whose routers have logits:
//   kl        KL(p_clean || p) of the softmax of the clean logits, mean over the image's tokens
//   gate_gap  -max(0, gap), mean over tokens; the gap is that between the smallest probability of the experts that the
//             clean image's token chose and the largest of the others: 0 once the choice has changed
//   drops     the share of the assignments that capacity drops, in the whole batch; below the first drop, minus the
//             share that is missing to it. Counts have no gradient: theirs is that of the summed probabilities, into
//             the experts that are full, or into the fullest
std::vector<std::string> routing_loss_names();

// output: of a pass over the images at `row` [B] int64 of `clean`. Returns [B], differentiable; for drops the same
// number for each image. Raises Error for a model without such routers, for drops also without capacity, and where the
// pass has other images too.
at::Tensor routing_loss(const std::string& name, const ModelOutput& output, const CleanPass& clean,
                        const at::Tensor& row);

}  // namespace sparsight
