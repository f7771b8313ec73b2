// A worked example of noisy top-k gating: 3 tokens, 4 experts, k = 2, a noise floor of 0. Tokens, weights and noise are
// those of vmoe_example.h. The expected values in the tests that include this were computed in float64 and checked by
// central differences.
#pragma once

#include <vector>

#include "sparsight/moe/experts.h"
#include "sparsight/moe/routers/noisy_topk.h"
#include "tests/moe/vmoe_example.h"

namespace sparsight::test {

inline at::Tensor table(const std::vector<std::vector<double>>& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(torch::tensor(row, torch::kDouble));
  return torch::stack(tensors);
}

inline at::Tensor example_noise_weight() {  // Wn [D,E]
  return table({{0.2, -0.1, 0.3, 0.0}, {0.1, 0.4, -0.2, 0.3}, {-0.3, 0.2, 0.1, -0.4}});
}

// The example's leaves, so that gradients can be compared: x [N,D], wg and wn [D,E].
struct NoisyExample {
  at::Tensor x, wg, wn, clean, scale, epsilon;

  explicit NoisyExample(at::ScalarType type, double floor = 0)
      : x(leaf(example_tokens(), type)),
        wg(leaf(example_weight(), type)),
        wn(leaf(example_noise_weight(), type)),
        clean(x.matmul(wg)),
        scale(noise_scale(x.matmul(wn), floor)),
        epsilon(example_epsilon().to(type)) {
    clean.retain_grad();
    scale.retain_grad();
  }

  Routing route(int64_t k = 2) const { return route_noisy_topk(clean, scale, epsilon, k); }

 private:
  static at::Tensor leaf(const at::Tensor& values, at::ScalarType type) {
    return values.to(type).clone().requires_grad_(true);
  }
};

// [N,E]: the gates at their experts, 0 elsewhere.
inline at::Tensor dense_gates(const Routing& routing) {
  return torch::zeros({routing.tokens, routing.experts}, routing.gate.options())
      .index_put({routing.token, routing.expert}, routing.gate);
}

// Toy experts E_i(x) = (i+1) x.
class Scaling : public Experts {
 public:
  at::Tensor compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext&) override {
    const at::Tensor expert = torch::repeat_interleave(torch::arange(4, torch::kLong), offsets.diff());
    return rows * (expert + 1).to(rows.scalar_type()).unsqueeze(1);
  }
};

}  // namespace sparsight::test
