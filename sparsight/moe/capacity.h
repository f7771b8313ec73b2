// Expert capacity: how many tokens an expert takes, and which assignments are dropped beyond that. Applied to any
// token-choice routing, after the router. Letters: moe/axes.md; G groups of S tokens.
//
// The published rules as settings (C rows per expert and group, f the factor):
//   GShard       C = 2 S / E             factor = 1, k = 2
//   Switch       C = f S / E             count_k = false, rounding = "floor" (or "round"), minimum = 4
//   V-MoE        C = f k S / E           factor = 1.05, multiple = 4 (in the paper: multiple = 1, rounding = "round")
//   Megatron-LM  C = ceil(f k S / E)     the default rounding
//   GMoE         C = k floor(f ceil(S/E))
//                factor = 1.5, rounding = "floor_per_choice", priority = "max_gate"
// Shazeer et al. 2017 has no limit: factor = 0.
#pragma once

#include <string>

#include "sparsight/core/options.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

struct CapacityOptions {
  double factor = 0;
  double eval_factor = -1;
  std::string rounding = "ceil";
  int64_t multiple = 1;
  int64_t minimum = 1;
  bool count_k = true;
  std::string priority = "none";
  int64_t group = 0;
  std::string group_unit = "images";
  bool renormalize = false;
  void declare(OptionSet& set);
};

// The factor of training or of evaluation; 0: no limit.
double capacity_factor(const CapacityOptions& options, bool training);

// Sets group and group_count of a routing with a layout. image, group: [B] int64 as in RoutingContext. `group`, if
// defined, overrides the options: images with the same number are one group. Otherwise the option `group` counts images
// or tokens by their numbers, so that an image stays in its group when others leave the batch.
void set_capacity_groups(Routing& routing, const CapacityOptions& options, const at::Tensor& image,
                         const at::Tensor& group);

// C for a group of `tokens` tokens with k choices each (on average, if the number varies). At least `minimum`, and at
// most `tokens` before rounding up to the multiple.
int64_t expert_capacity(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k);
// The rows of the buffer that implementations with fixed shapes compute: the same, not limited by the tokens. Two
// experts with k = 2 and a factor above 1 have more.
int64_t buffer_capacity(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k);

// Sets kept, position, capacity, order and offsets; with `renormalize` also gate. Slots in an expert's buffer go
// to all first choices, then to all second choices, and so on (GShard); within a rank in token order, or by
// decreasing priority (batch-priority routing of V-MoE, section 4.1, by the largest score of its choices or
// their sum, before any renormalisation of the gates; "given":
// Routing::priority; equal scores: the lower token first, NaN last). Routings that do not choose per token
// (per_token = 0) and a factor of 0 are left as they are. Raises UsageError where "given" priorities are missing.
void apply_capacity(Routing& routing, const CapacityOptions& options, double factor);

}  // namespace sparsight
