#include "sparsight/papers/pmoe/theory/router_gradient.h"

#include <cmath>
#include <numeric>

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/shuffle.h"

namespace sparsight::pmoe {

at::Tensor router_gradients(const PatternSamples& samples) {
  const at::Tensor y = 1 - 2 * samples.labels.to(torch::kDouble);
  return -y.unsqueeze(1) * samples.patches.sum(1);
}

at::Tensor expected_router_gradient(const at::Tensor& patterns) {
  SPARSIGHT_CHECK(patterns.size(0) == 2);
  return (patterns[1] - patterns[0]) / 2;
}

double router_gradient_deviation(const PatternModel& model, const std::string& part, int64_t count) {
  const at::Tensor mean = router_gradients(model.sample(part, count)).mean(0);
  return (mean - expected_router_gradient(model.patterns())).norm().item<double>();
}

double batch_gradient_deviation(const at::Tensor& gradients, int64_t size, uint64_t seed) {
  const int64_t count = gradients.size(0), batches = count / size;
  if (size < 1 || batches < 2)
    fail_usage("the deviation of batches of ", size, " needs at least ", 2 * size, " samples, got ", count);
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, "theory.batches");
  shuffle(order, random);
  const at::Tensor shuffled =
      gradients.index_select(0, torch::tensor(order, torch::kLong).narrow(0, 0, batches * size));
  const at::Tensor means = shuffled.view({batches, size, -1}).mean(1);
  return std::sqrt((means - gradients.mean(0)).square().sum(1).mean().item<double>());
}

}  // namespace sparsight::pmoe
