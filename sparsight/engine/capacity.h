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
#include "sparsight/engine/routing.h"

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

// C for a group of `tokens` tokens with k choices each (on average, if the number varies). At least `minimum`, and at
// most `tokens` before rounding up to the multiple.
int64_t expert_capacity(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k);
// The rows of the buffer that implementations with fixed shapes compute: the same, not limited by the tokens. Two
// experts with k = 2 and a factor above 1 have more.
int64_t buffer_capacity(const CapacityOptions& options, double factor, int64_t tokens, int64_t experts, double k);

namespace engine {

// Assignments that ask for slots, sorted by token and then by rank. G groups of tokens.
struct SlotRequests {
  int64_t tokens = 0, experts = 0, assignments = 0;  // N, E, A
  int64_t per_token = 0;                             // K
  bool varying = false;                              // tokens have different numbers of choices, at most K
  const int64_t *token = nullptr, *expert = nullptr, *rank = nullptr;  // [A]
  int64_t groups = 1;
  const int64_t* group = nullptr;        // [N], 0..G-1; null: one group
  const int64_t* group_sizes = nullptr;  // [G]: tokens of each group, without padding; null: all N in one group
  const double* priority = nullptr;      // [N]: higher ones get a slot first; null: token order
};

// Writes capacity [G], and position and kept, [A] each: slots in an expert's buffer go to all first choices, then to
// all second choices, and so on (GShard); within a rank by decreasing priority. Equal scores: the lower token first,
// NaN last.
void assign_slots(const CapacityOptions& options, double factor, const SlotRequests& requests, int64_t* capacity,
                  int64_t* position, bool* kept);

// [N]: each token's largest score among its choices, or their sum, as [capacity] priority says; 0 for a token without
// choices. score: [A].
void token_priority(const SlotRequests& requests, const double* score, bool sum, double* priority);

// Drops what exceeds the capacity, as apply_capacity() of moe/capacity.h does. image: [B] numbers of the images in the
// dataset, by which the setting `group` counts, or null for 0 .. B-1. group: [B], images with the same number are one
// group; null: by the settings. Sets kept, position and capacity, and groups what is kept by expert. Returns false, and
// does nothing, where there is no limit.
[[nodiscard]] bool apply_capacity(Routing& routing, const CapacityOptions& options, double factor, const int64_t* image,
                                  const int64_t* group);

}  // namespace engine

}  // namespace sparsight
