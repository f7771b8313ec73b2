#include "sparsight/nn/weight_init.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/nn/glorot.h"

namespace sparsight {

void WeightInit::declare(OptionSet& set) {
  set.choice("init", &init, {"normal", "trunc_normal", "fan_in", "xavier_uniform", "torch_linear"},
             "initial weights: N(0, init_std²); the same truncated at ± 2 init_std; N(0, init_scale / fan_in); U(± "
             "sqrt(6 / (fan_in + fan_out))); U(± 1 / sqrt(fan_in)), also for biases, as PyTorch's nn.Linear");
  set.real("init_std", &init_std, {0, 1000}, "standard deviation of initial weights (normal, trunc_normal)");
  set.real("init_scale", &init_scale, {0, 1000}, "variance of initial weights times fan_in (fan_in; 0.1 in Switch)");
}

void init_weights(at::Tensor& weight, at::Tensor& bias, const Fans& fans, const WeightInit& options,
                  const RandomStream& of_weight, const RandomStream& of_bias) {
  const auto fan_in = static_cast<double>(fans.in);
  if (bias.defined()) {
    const torch::NoGradGuard no_grad;
    bias.zero_();
  }
  if (options.init == "normal") return init_normal(weight, options.init_std, of_weight);
  if (options.init == "trunc_normal") return init_trunc_normal(weight, options.init_std, of_weight);
  if (options.init == "fan_in") return init_normal(weight, std::sqrt(options.init_scale / fan_in), of_weight);
  if (options.init == "xavier_uniform") return init_glorot_uniform(weight, fans.in, fans.out, of_weight);
  SPARSIGHT_CHECK(options.init == "torch_linear");
  init_uniform(weight, 1 / std::sqrt(fan_in), of_weight);
  if (bias.defined()) init_uniform(bias, 1 / std::sqrt(fan_in), of_bias);
}

}  // namespace sparsight
