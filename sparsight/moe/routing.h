// A router's decision, as a plain value. Dispatch, losses, statistics, plots and serving only read it.
// Letters: moe/axes.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/engine/token_layout.h"

namespace sparsight {

struct SoftRouting;

// How a loss counts that several routers of a model have.
enum class OverRouters { sum, mean };

// One auxiliary loss of a routing. A model's losses of one name are always summed; those whose mean is meant are
// divided by their number first (average_over_routers).
struct NamedLoss {
  std::string name;   // "importance"
  at::Tensor value;   // [] fp32, unweighted, differentiable
  double weight = 0;  // what the trainer multiplies it by
  OverRouters over_routers = OverRouters::sum;
};

// A number that a router reports about one of its routings (Router::metrics).
struct RoutingMetric {
  std::string name;
  double value = 0;
};

// The decision of any router: a list of A assignments (token, expert), sorted by token and then rank for token-choice
// routers, in any order for expert-choice routers. Padding has no assignments. For a router that mixes tokens instead
// of choosing experts, `soft` has the decision and the list is empty.
struct Routing {
  std::string layer;  // module path of the MoE layer, "blocks.3.mlp", or "router" for a model-wide router
  TokenLayout layout;
  int64_t tokens = 0;       // N, padding included
  int64_t experts = 0;      // E
  at::Tensor group;         // [N] int64, 0..G-1: tokens that share capacity and losses per group; undefined: one group
  int64_t group_count = 1;  // G
  std::vector<NamedLoss> losses;            // computed before capacity, if ForwardMode::losses
  std::shared_ptr<const SoftRouting> soft;  // null for routers that choose experts
  at::Tensor valid;     // [N] bool: false for padding, which is never counted and whose rows [N,E] are 0; undefined:
                        // no padding
  at::Tensor priority;  // [N] the caller's scores for [capacity] priority = "given"; undefined: none given
  at::Tensor target;    // [B,E] target probability of each expert (super-class guidance); undefined without guidance

  at::Tensor clean_logits;  // [N,E] fp32, before noise; differentiable. Undefined for routers without scores (hash)
                            // and for those of two levels
  at::Tensor noisy_logits;  // [N,E] fp32, what selection saw; the same tensor as clean_logits without noise
  at::Tensor noise_scale;   // [N,E], or [] where constant: standard deviation of the noise; differentiable where it is
                            // learned; undefined without noise. The smooth load follows from it unless the router is
                            // varying or has a smooth_load
  at::Tensor scores;        // [N,E] fp32, the router's dense scores (softmax, sigmoid, cosine); differentiable
  at::Tensor threshold;     // [E] minimum score in evaluation; strictly balanced gating only
  std::shared_ptr<const Routing> groups;  // first level of two-level routers, with groups of experts instead of
                                          // experts; else null

  // Chosen: before capacity.
  at::Tensor token;         // [A] int64, 0..N-1
  at::Tensor expert;        // [A] int64, 0..E-1
  at::Tensor rank;          // [A] int64, 0 for a token's (or an expert's) first choice
  at::Tensor gate;          // [A] fp32, weight of the expert's output; differentiable
  at::Tensor chosen_count;  // [E] int64
  int64_t per_token = 0;    // K of token-choice routers (fewer for a token if the router skips a choice), else 0
  bool varying = false;     // tokens have different numbers of choices, at most K: capacity is a share of the choices
                            // made rather than of K per token
  bool skips = false;       // a token may have fewer than K choices although capacity counts K per token (GShard)
  at::Tensor smooth_load;   // [E] expected assignments, if the router itself estimates them (hierarchical);
                            // differentiable; undefined: losses/load.h derives them from logits and noise
  std::vector<RoutingMetric> metrics;  // reported by the router in addition to routing_stats.h; empty for most
  bool sampled = false;                // the router used random numbers: in another step it may choose otherwise

  // Kept: after capacity. Assignments dropped by capacity contribute nothing.
  at::Tensor kept;      // [A] bool
  at::Tensor capacity;  // [G] int64, slots per expert for each group; undefined: no limit
  at::Tensor position;  // [A] int64, slot in the expert's buffer for the group, beyond the capacity for dropped ones;
                        // undefined without a limit
  at::Tensor order;     // [A_kept] int64: kept assignments grouped by expert, ties in assignment order
  at::Tensor offsets;   // [E+1] int64: expert e owns order[offsets[e] .. offsets[e+1])
};

// The same decision detached from the graph and without losses, to keep after the step.
Routing detached(Routing routing);

// Groups of `size` consecutive tokens; the last one may be shorter. 0: one group.
void set_consecutive_groups(Routing& routing, int64_t size);
// [N] int64: the group of each token.
at::Tensor group_of_token(const Routing& routing);
// [G] int64: number of tokens in each group, without padding.
at::Tensor group_sizes(const Routing& routing);

// image: [B] int64 numbers of the layout's images; undefined: 0 .. B-1. Returns [N] int64: image * S + position in it.
at::Tensor token_numbers(const TokenLayout& layout, const at::Tensor& image);

}  // namespace sparsight
