#include "sparsight/papers/gmoe/theory/training_parts.h"

#include <cmath>

#include <ATen/ATen.h>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/linear.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/optim/adam.h"

namespace sparsight::gmoe {

void initialize_as_torch(torch::nn::Module& network, uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (const auto& module : network.named_modules()) {
    auto* const linear = module.value()->as<LinearImpl>();
    if (!linear) continue;
    const double bound = 1 / std::sqrt(static_cast<double>(linear->weight.size(1)));
    const InitRandom random{seed, module.key()};
    init_uniform(linear->weight, bound, random.stream("weight"));
    if (linear->bias.defined()) init_uniform(linear->bias, bound, random.stream("bias"));
  }
}

void train_minibatches(torch::nn::Module& network, const MinibatchTraining& training,
                       const std::function<at::Tensor(const at::Tensor& index, int64_t step)>& loss) {
  std::vector<OptimizedParameter> parameters;
  for (const auto& parameter : network.named_parameters()) parameters.push_back({parameter.key(), parameter.value()});
  Adam adam(AdamOptions{.lr = training.lr}, /*decoupled=*/false, parameters);
  for (int64_t step = 0; step < training.steps; ++step) {
    if (interrupted()) fail("interrupted after step ", step);
    const at::Tensor uniform = uniform_like(at::empty({0}, at::kDouble), {training.batch},
                                            RandomStream(training.seed, "minibatches", static_cast<uint64_t>(step)));
    const at::Tensor value = loss((uniform * static_cast<double>(training.samples)).to(at::kLong), step);
    if (!std::isfinite(value.item<double>())) fail("the loss is not finite at step ", step);
    adam.zero_grad();
    value.backward();
    adam.step(training.lr);
  }
}

}  // namespace sparsight::gmoe
