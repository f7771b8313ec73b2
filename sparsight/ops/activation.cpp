#include "sparsight/ops/activation.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/threshold_backward.h>

#include "sparsight/core/nearest_name.h"

namespace sparsight {

const std::vector<std::string>& activation_names() {
  static const std::vector<std::string> names{"gelu", "relu", "silu", "gelu_tanh"};  // in the order of the enumeration
  return names;
}

Activation parse_activation(const std::string& name) {
  return static_cast<Activation>(find_position(name, activation_names(), "activation"));
}

int64_t activation_operations(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return 1;
    case Activation::silu:
      return 4;  // negate, exp, add, divide
    case Activation::gelu_tanh:
      return 9;  // x/2 (1 + tanh(a (x + b x³))): seven multiplications and additions, tanh, the half
    default:
      return 5;  // x/2 (1 + erf(x/sqrt(2))): divide, erf, add, two multiplications
  }
}

at::Tensor activate(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return at::relu(x);
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    default:
      return at::gelu(x);
  }
}

at::Tensor activate_backward(const at::Tensor& grad, const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return at::threshold_backward(grad, x, 0);
    case Activation::silu:
      return at::silu_backward(grad, x);
    case Activation::gelu_tanh:
      return at::gelu_backward(grad, x, "tanh");
    default:
      return at::gelu_backward(grad, x);
  }
}

}  // namespace sparsight
