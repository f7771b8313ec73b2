// SGD on the routers of two classes in separate training: Chowdhury et al. 2023, "Patch-level Routing in
// Mixture-of-Experts is Provably Sample-efficient for Convolutional Neural Networks", equation 6, algorithm 1 (step 2).
// The loss is linear in the kernels, so a sample's gradient never changes: its patches' sum with the sign of its class.
#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "sparsight/core/random.h"

namespace sparsight::pmoe {

struct RouterSgd {
  double lr = 0.2;
  int64_t batch = 20;                                // the last batch of an epoch may be smaller
  int64_t steps = 0;                                 // over as many epochs as they take
  std::function<RandomStream(int64_t epoch)> order;  // of the samples in an epoch, from 0
};

// first, second: [d] kernels, updated in place; an undefined one is left out. signed_sums: [N,d] of both classes: the
// sum of a sample's patches, positive for samples of `first`.
void train_router_pair(const at::Tensor& first, const at::Tensor& second, const at::Tensor& signed_sums,
                       const RouterSgd& sgd);

// ids: [N] int64. Shuffled in place, and returned.
at::Tensor shuffled(at::Tensor ids, const RandomStream& stream);

}  // namespace sparsight::pmoe
