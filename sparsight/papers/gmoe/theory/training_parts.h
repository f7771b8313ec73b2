// What the small experiments on theory share: torch's initial values, and training with Adam on random minibatches.
#pragma once

#include <functional>

#include <torch/nn/module.h>

namespace sparsight::gmoe {

// U(-1/sqrt(inputs), 1/sqrt(inputs)) for weights [outputs,inputs] and their biases, as torch.nn.Linear has them.
void initialize_as_torch(torch::nn::Module& network, uint64_t seed);

struct MinibatchTraining {
  int64_t samples, steps, batch;
  double lr;
  uint64_t seed;
};

// Adam on loss(index, step), where index [batch] int64 are samples that are drawn with replacement. Raises Error if the
// loss is not finite, or on an interrupt.
void train_minibatches(torch::nn::Module& network, const MinibatchTraining& training,
                       const std::function<at::Tensor(const at::Tensor& index, int64_t step)>& loss);

}  // namespace sparsight::gmoe
