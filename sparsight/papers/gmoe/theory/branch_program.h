// An experiment on theorem 2 of Li et al. 2023: an MoE layer learns a program with four branches, which one projection
// of the input chooses; training and test have other shares of the branches.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight::gmoe {

struct BranchSamples {
  at::Tensor inputs;   // [N,16]
  at::Tensor targets;  // [N]
  at::Tensor branch;   // [N] int64: 0 .. 3
};

inline const std::vector<double> kTrainShares = {0.7, 0.1, 0.1, 0.1}, kEqualShares = {0.25, 0.25, 0.25, 0.25};

// Inputs are N(0, I) given their branch. Branch j is where <x, w> is between the quartiles j and j+1 of the normal
// distribution, |w| = 1; its target is 2 tanh(<a_j, x>) + <b_j, x>, with a and b N(0, 4/16). w, a and b follow from
// `seed`.
BranchSamples sample_branches(int64_t samples, const std::vector<double>& shares, uint64_t seed, const char* purpose);

struct BranchTraining {
  int64_t experts = 4;
  int64_t samples = 16000, steps = 4000, batch = 128;
  double lr = 3e-3;
  int64_t test_samples = 20000;
  uint64_t seed = 0;
};

// Mean squared errors over the variance of the targets, with the shares of training and with equal ones.
struct BranchErrors {
  double in_distribution, shifted;
};

// Experts 16 -> 16 -> 1 with ReLU, one of which sees an input, chosen by a linear router with bias and noise 1/N;
// importance and load losses 0.005. A function of the settings.
BranchErrors train_on_branches(const BranchTraining& training);

}  // namespace sparsight::gmoe
