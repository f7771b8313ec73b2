#include "sparsight/papers/pmoe/two_layer/value_function.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

#include "sparsight/core/error.h"

namespace sparsight::pmoe {

ValueFunction value_function(const at::Tensor& f, const at::Tensor& labels) {
  SPARSIGHT_CHECK(f.dim() == 1 && f.sizes() == labels.sizes());
  constexpr double kRounding = 1e-12;
  const at::Tensor margin = f.to(torch::kDouble) * (2 * labels.to(torch::kDouble) - 1);  // y f
  const at::Tensor v = torch::sigmoid(-margin), wrong = (margin <= 0).to(torch::kDouble);
  SPARSIGHT_CHECK((v >= 0.5).equal(margin <= 0));
  ValueFunction found;
  for (int64_t k = 0; k < 2; ++k) {
    const at::Tensor of_class = (labels == k).to(torch::kDouble);
    const double count = std::max(1.0, of_class.sum().item<double>());
    const double value = (v * of_class).sum().item<double>() / count,
                 error = (wrong * of_class).sum().item<double>() / count;
    SPARSIGHT_CHECK(error <= 2 * value + kRounding);
    SPARSIGHT_CHECK(std::sqrt(value) >= 0.5 || error <= std::sqrt(value) + kRounding);
    found.value[static_cast<size_t>(k)] = value;
    found.error[static_cast<size_t>(k)] = error;
  }
  return found;
}

}  // namespace sparsight::pmoe
