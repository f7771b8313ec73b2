#include "sparsight/nn/batch_norm.h"

#include <cmath>

namespace sparsight {

double kept_fraction(const BatchNormOptions& options, int64_t batches) {
  if (!options.debias) return options.momentum;
  const auto seen = static_cast<double>(batches);
  if (options.momentum == 1) return seen / (seen + 1);
  return options.momentum * (1 - std::pow(options.momentum, seen)) / (1 - std::pow(options.momentum, seen + 1));
}

at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& norm, const BatchNormOptions& options,
                      bool batch_statistics) {
  const at::ScalarType type = at::isReducedFloatingType(x.scalar_type()) ? torch::kFloat : x.scalar_type();
  at::Tensor mean = norm.running_mean.to(type), var = norm.running_var.to(type);
  // torch reads some of these as contiguous, whatever their strides.
  const auto ready = [&](const at::Tensor& t) { return t.to(type).contiguous(); };
  const double kept = batch_statistics ? kept_fraction(options, norm.batches.item<int64_t>()) : 1;
  const at::Tensor y = at::batch_norm(ready(x), ready(norm.weight), ready(norm.bias), mean, var, batch_statistics,
                                      1 - kept, options.epsilon, /*cudnn_enabled=*/false);
  if (batch_statistics) {
    const torch::NoGradGuard no_grad;
    at::Tensor(norm.batches).add_(1);
    if (!mean.is_same(norm.running_mean)) {
      at::Tensor(norm.running_mean).copy_(mean);
      at::Tensor(norm.running_var).copy_(var);
    }
  }
  return y.to(x.scalar_type());
}

BatchNormImpl::BatchNormImpl(const BatchNormOptions& options) : options_(options) {
  tensors.weight = register_parameter("weight", torch::ones({options.channels}));
  tensors.bias = register_parameter("bias", torch::zeros({options.channels}));
  tensors.running_mean = register_buffer("running_mean", torch::zeros({options.channels}));
  tensors.running_var = register_buffer("running_var", torch::ones({options.channels}));
  tensors.batches = register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong));
}

at::Tensor BatchNormImpl::forward(const at::Tensor& x, bool batch_statistics) {
  return batch_norm(x, tensors, options_, batch_statistics);
}

Cost batch_norm_cost(int64_t channels) {
  Cost cost = norm_cost(channels);
  cost.weight_bytes *= 2;
  return cost;
}

Cost BatchNormImpl::cost() const { return batch_norm_cost(options_.channels); }

BatchNorm torchvision_norm(int64_t channels) {
  return BatchNorm(BatchNormOptions{channels, 1e-5, 0.9, /*debias=*/false});
}

void BatchNormImpl::initialize(const InitRandom&) {
  const torch::NoGradGuard no_grad;
  tensors.weight.fill_(1);
  tensors.bias.zero_();
  tensors.running_mean.zero_();
  tensors.running_var.fill_(1);
  tensors.batches.zero_();
}

}  // namespace sparsight
