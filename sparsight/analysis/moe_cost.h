// What an MoE layer costs an image, from the sections [moe], [experts] and [router]. Counted as in
// analysis/layer_cost.h, for training: router.k and not router.eval_k, the noise of routers that have it, and every
// assignment that the router makes, before capacity. Letters: moe/axes.md.
#pragma once

#include <vector>

#include "sparsight/analysis/part_cost.h"
#include "sparsight/core/options.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight {

// One expert, per row; `shape.experts` is of no account. Counted are experts "mlp", "swiglu", "linear" and "conv";
// fixed output weights are neither parameters nor multiply-adds. Raises UsageError for others, and where the shape does
// not fit them.
Cost expert_cost(const Json& resolved, const ExpertShape& shape);

// The parts "<path>.router", ".experts" and, if there are any, ".shared". resolved: with the sections of read_moe_spec.
// tokens: of an image, S. Counted are the routers of moe/register_moe.h and the experts above. Raises UsageError for
// others, and where the router does not fit the layer.
std::vector<PartCost> moe_cost(const Json& resolved, const MoePlace& place, int64_t tokens);

}  // namespace sparsight
