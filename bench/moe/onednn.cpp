#include "bench/moe/onednn.h"

#include <optional>
#include <string_view>

#include <ATen/ATen.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace sparsight::bench {
namespace {

// weight: [O,I] -> the same in the order that oneDNN chooses for about so many rows.
at::Tensor onednn_packed(const at::Tensor& weight, int64_t rows) {
  using Signature = at::Tensor(const at::Tensor&, std::optional<int64_t>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_reorder_linear_weight", "").typed<Signature>();
  return op.call(weight, rows);
}

}  // namespace

at::Tensor onednn_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool gelu) {
  using Signature = at::Tensor(const at::Tensor&, const at::Tensor&, const std::optional<at::Tensor>&, std::string_view,
                               c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  const std::optional<at::Tensor> with_bias = bias.defined() ? std::optional(bias) : std::nullopt;
  return op.call(x, weight, with_bias, gelu ? "gelu" : "none", c10::List<std::optional<at::Scalar>>(), "none");
}

OnednnExperts onednn_experts(const ExpertMlpWeights& weights, int64_t rows) {
  OnednnExperts experts;
  const auto matrix = [rows](const at::Tensor& w) {
    const at::Tensor plain = w.detach().t().contiguous();
    return rows > 0 ? onednn_packed(plain, rows) : plain;
  };
  for (int64_t e = 0; e < weights.w1.size(0); ++e) {
    experts.w1.push_back(matrix(weights.w1[e]));
    experts.b1.push_back(weights.b1[e].detach());
    experts.w2.push_back(matrix(weights.w2[e]));
    experts.b2.push_back(weights.b2[e].detach());
  }
  return experts;
}

}  // namespace sparsight::bench
