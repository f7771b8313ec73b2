// Groups assignments (of a token to an expert) by expert: a stable counting sort, two passes over the assignments.
#pragma once

#include <cstdint>

namespace sparsight::cpu {

// expert: [A], 0 .. E-1. Adds 1 to counts[expert[a]] for each assignment; counts: [E].
void count_by_expert(const int64_t* expert, int64_t assignments, int64_t* counts);

// kept: [A]. Writes offsets [E+1]: expert e has the positions offsets[e] .. offsets[e+1] of the kept assignments.
void expert_offsets(const int64_t* expert, const bool* kept, int64_t assignments, int64_t experts, int64_t* offsets);

// Writes order [offsets[E]]: the kept assignments by expert, in their original order within an expert.
void order_by_expert(const int64_t* expert, const bool* kept, int64_t assignments, int64_t experts,
                     const int64_t* offsets, int64_t* order);

}  // namespace sparsight::cpu
