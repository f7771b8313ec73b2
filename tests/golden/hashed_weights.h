// Weights that a Python script and a test compute alike from the names of a model's tensors: make_weights() of
// make_resnet_golden.py.
#pragma once

#include <cmath>
#include <map>
#include <string>

#include <torch/nn/module.h>

namespace sparsight::test {

// uniform() of the script.
inline at::Tensor hashed_uniform(int64_t number, at::IntArrayRef sizes) {
  const int64_t mask = 0xFFFFFFFF;
  at::Tensor h = at::arange(c10::multiply_integers(sizes), torch::kLong) * int64_t{2654435761} + (number + 1) * 974711;
  h = h.bitwise_and(mask);
  for (int i = 0; i < 2; ++i) h = (h.bitwise_xor(h.bitwise_right_shift(16)) * 73244475).bitwise_and(mask);
  h = h.bitwise_xor(h.bitwise_right_shift(16));
  return (h.to(torch::kDouble) / 4294967296. - 0.5).reshape(sizes);
}

// The numbers are those of the sorted names, so all names must be those of the script's model.
inline void set_hashed_weights(torch::nn::Module& model, double gain = 1) {
  const torch::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> sorted;
  for (const auto& p : model.named_parameters()) sorted[p.key()] = p.value();
  for (const auto& b : model.named_buffers())
    if (!b.key().ends_with("num_batches_tracked")) sorted[b.key()] = b.value();
  int64_t number = 0;
  for (auto& [name, tensor] : sorted) {
    const at::Tensor u = hashed_uniform(number++, tensor.sizes());
    if (u.dim() > 1)
      tensor.copy_(u * gain * std::sqrt(12 / static_cast<double>(u[0].numel())));
    else if (name.ends_with("running_var"))
      tensor.copy_(1 + u);
    else
      tensor.copy_(0.6 * u + (name.ends_with("weight") ? 1 : 0));
  }
}

inline double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

}  // namespace sparsight::test
