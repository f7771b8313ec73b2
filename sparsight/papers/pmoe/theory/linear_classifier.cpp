#include "sparsight/papers/pmoe/theory/linear_classifier.h"

#include <torch/types.h>

namespace sparsight::pmoe {

LinearClassifier train_linear(const PatternSamples& samples, int64_t iterations, double ridge) {
  const at::Tensor x = samples.patches.flatten(1), y = 2 * samples.labels.to(torch::kDouble) - 1;
  const auto count = static_cast<double>(x.size(0));
  const at::Tensor eye = torch::eye(x.size(1), torch::kDouble) * ridge;
  const auto loss = [&](const at::Tensor& w) {
    return (torch::softplus(-y * x.matmul(w)).mean() + ridge / 2 * w.dot(w)).item<double>();
  };
  LinearClassifier found;
  found.weight = torch::zeros({x.size(1)}, torch::kDouble);
  double before = loss(found.weight);
  for (; found.iterations < iterations; ++found.iterations) {
    const at::Tensor v = torch::sigmoid(-y * x.matmul(found.weight));
    const at::Tensor gradient = -x.t().matmul(y * v) / count + ridge * found.weight;
    if (gradient.norm().item<double>() < 1e-8) break;
    const at::Tensor hessian = x.t().matmul((v * (1 - v)).unsqueeze(1) * x) / count + eye;
    const at::Tensor step = torch::linalg_solve(hessian, gradient);
    double length = 1, after = 0;
    for (;; length /= 2) {  // a full Newton step may overshoot
      after = loss(found.weight - length * step);
      if (after <= before || length < 1e-6) break;
    }
    found.weight -= length * step;
    before = after;
  }
  found.training_error = (linear_outputs(found, samples) * y <= 0).to(torch::kDouble).mean().item<double>();
  return found;
}

at::Tensor linear_outputs(const LinearClassifier& classifier, const PatternSamples& samples) {
  return samples.patches.flatten(1).matmul(classifier.weight);
}

}  // namespace sparsight::pmoe
