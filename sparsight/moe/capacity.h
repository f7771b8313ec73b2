// Expert capacity: how many tokens an expert takes, and which assignments are dropped beyond that. Applied to any
// token-choice routing, after the router. Letters: moe/axes.md; G groups of S tokens. The rules: engine/capacity.h.
#pragma once

#include "sparsight/engine/capacity.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// Sets group and group_count of a routing with a layout. image, group: [B] int64 as in RoutingContext. `group`, if
// defined, overrides the options: images with the same number are one group. Otherwise the option `group` counts images
// or tokens by their numbers, so that an image stays in its group when others leave the batch.
void set_capacity_groups(Routing& routing, const CapacityOptions& options, const at::Tensor& image,
                         const at::Tensor& group);

// Sets kept, position, capacity, order and offsets; with `renormalize` also gate. Slots in an expert's buffer go
// to all first choices, then to all second choices, and so on (GShard); within a rank in token order, or by
// decreasing priority (batch-priority routing of V-MoE, section 4.1, by the largest score of its choices or
// their sum, before any renormalisation of the gates; "given":
// Routing::priority; equal scores: the lower token first, NaN last). Routings that do not choose per token
// (per_token = 0) and a factor of 0 are left as they are. Raises UsageError where "given" priorities are missing.
void apply_capacity(Routing& routing, const CapacityOptions& options, double factor);

}  // namespace sparsight
