// An experiment on theorem 1 of Li et al. 2023: the same loss and data, and an architecture decides whether the
// invariant or the spurious correlation is learned. The input has two sets of 8 scalars; the target is the maximum of
// the first, and in training also the mean of the second. A network that pools by maximum aligns with the first, one
// that pools by mean with the second.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight::gmoe {

struct SetSamples {
  at::Tensor invariant;  // [N,8]: U(0, t), one of them t
  at::Tensor spurious;   // [N,8]: N(0, 0.3²), recentred to the mean t_s
  at::Tensor target;     // [N]: t ~ U(0,1)
};

// t_s is t, except with probability `independent`, where it is another U(0,1).
SetSamples sample_sets(int64_t samples, double independent, uint64_t seed, const char* purpose);

enum class SetPooling { max, mean };

struct SetTraining {
  SetPooling pooling = SetPooling::max;
  double independent = 0;  // share of the training samples whose second set tells nothing: rho
  int64_t samples = 4000, steps = 1500, batch = 64;
  double lr = 1e-3;
  int64_t test_samples = 4000;
  uint64_t seed = 0;
};

// Root mean square errors on samples as in training, and on those whose second set tells nothing.
struct SetErrors {
  double in_distribution, shifted;
};

// Each set: an encoder 1 -> 32 -> 32 with ReLU, shared by its elements, and pooling; then a linear layer. Adam, mean
// squared error. A function of the settings.
SetErrors train_on_sets(const SetTraining& training);

}  // namespace sparsight::gmoe
