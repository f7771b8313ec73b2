// A worked example of the V-MoE router: 3 tokens, 4 experts, noise multiplier 1 (standard deviation 1/4), k = 2. The
// clean logits are X Wg. The expected values in the tests that include this were computed in float64 and checked by
// central differences.
#pragma once

#include <torch/types.h>

namespace sparsight::test {

inline at::Tensor example_tokens() {  // X [N,D]
  return torch::tensor({{1.0, -0.5, 0.25}, {0.5, 1.5, -1.0}, {-1.25, 0.75, 0.5}}, torch::kDouble);
}
inline at::Tensor example_weight() {  // Wg [D,E]
  return torch::tensor({{0.6, -0.4, 0.2, 0.1}, {-0.3, 0.5, 0.7, -0.2}, {0.8, 0.1, -0.5, 0.4}}, torch::kDouble);
}
inline at::Tensor example_epsilon() {  // [N,E]
  return torch::tensor({{0.5, -1.2, 0.3, 0.8}, {-0.7, 0.4, 1.1, -0.2}, {1.5, -0.6, 0.2, -0.9}}, torch::kDouble);
}
inline at::Tensor example_logits() { return example_tokens().matmul(example_weight()); }  // [N,E]

// The printed values have six decimals: half a unit of the last, and the rounding of fp32 sums.
inline double example_tolerance(at::ScalarType type) { return type == torch::kDouble ? 1e-6 : 1e-5; }

}  // namespace sparsight::test
