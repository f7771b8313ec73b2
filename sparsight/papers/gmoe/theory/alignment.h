// How well an MoE layer aligns with a program of if and else (Li et al. 2023, theorem 2): the number of modules times
// the samples that the hardest of them needs. Letters: M branches of the program, N experts.
#pragma once

#include <cstdint>
#include <vector>

namespace sparsight::gmoe {

// What the program's parts cost to learn, in samples.
struct ProgramCosts {
  std::vector<double> branches;  // [M], each alone
  double gate = 1;               // the condition, by the router
  // An expert that has a group of branches needs (sum of branch^(1/power))^power: for equal branches c times the number
  // of branches to this power. At least 1.
  double power = 1;
};

double group_cost(const ProgramCosts& costs, const std::vector<double>& group);

// M_P: the branches are distributed over at most `experts` groups so that the dearest group is cheapest. Exact, by
// dynamic programming over sets of branches; at most 16 of them. Raises Error for more, and without branches or
// experts.
double cheapest_grouping(const ProgramCosts& costs, int64_t experts);

// (N+1) max(M_P, gate) for fewer experts than branches, else (N+1) max(the dearest branch, gate). Lower is better.
double moe_alignment(const ProgramCosts& costs, int64_t experts);

}  // namespace sparsight::gmoe
