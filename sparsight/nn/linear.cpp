#include "sparsight/nn/linear.h"

#include <ATen/autocast_mode.h>

#include "sparsight/ops/grouped_linear.h"
#include "sparsight/ops/product_type.h"

namespace sparsight {

LinearImpl::LinearImpl(int64_t inputs, int64_t outputs, bool with_bias)
    : weight(register_parameter("weight", parameter_zeros({outputs, inputs}))) {
  if (with_bias) bias = register_parameter("bias", parameter_zeros({outputs}));
}

bool suits_kernels(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.numel() > 0 &&
         (!at::autocast::is_autocast_enabled(at::kCPU) || product_type() == ProductType::bf16);
}

at::Tensor fully_connected(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  if (!suits_kernels(x)) return at::linear(x, weight, bias);
  const at::Tensor rows = x.reshape({-1, x.size(-1)});
  const at::Tensor out =
      grouped_linear(rows, one_group(rows), weight.t().unsqueeze(0), bias.defined() ? bias.unsqueeze(0) : bias);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return out.view(sizes);
}

at::Tensor fully_connected_of_norm(const at::Tensor& x, LayerNormImpl& norm, LinearImpl& linear) {
  if (!suits_kernels(x)) return linear.forward(norm.forward(x));
  const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = linear.weight.size(0);
  return norm_linear(rows, norm.row_norm(), linear.weight, linear.bias).view(sizes);
}

at::Tensor LinearImpl::forward(const at::Tensor& x) { return fully_connected(x, weight, bias); }

void LinearImpl::initialize(const InitRandom& random) {
  init_normal(weight, kVitStd, random.stream("weight"));
  const torch::NoGradGuard no_grad;
  if (bias.defined()) bias.zero_();
}

Cost LinearImpl::cost() const { return linear_cost(weight.size(1), weight.size(0), bias.defined()); }

}  // namespace sparsight
