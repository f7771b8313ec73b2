#include "sparsight/nn/batch_norm.h"

#include <cmath>
#include <utility>

#include "sparsight/nn/linear.h"
#include "sparsight/ops/batch_norm.h"
#include "sparsight/ops/twice_differentiable.h"

namespace sparsight {

double kept_fraction(const BatchNormOptions& options, int64_t batches) {
  if (!options.debias) return options.momentum;
  const auto seen = static_cast<double>(batches);
  if (options.momentum == 1) return seen / (seen + 1);
  return options.momentum * (1 - std::pow(options.momentum, seen)) / (1 - std::pow(options.momentum, seen + 1));
}

namespace {

thread_local CollectedMoments* collected = nullptr;

}  // namespace

CollectedMoments::CollectedMoments() : before_(std::exchange(collected, this)) {}
CollectedMoments::~CollectedMoments() { collected = before_; }

void BatchMoments::update_averages() const {
  const torch::NoGradGuard no_grad;
  const double kept = kept_fraction(options, norm.batches.item<int64_t>());
  const auto update = [&](const at::Tensor& average, const at::Tensor& of_batch) {
    at::Tensor(average).copy_(kept * average.to(torch::kDouble) + (1 - kept) * of_batch.to(torch::kDouble));
  };
  update(norm.running_mean, mean);
  update(norm.running_var, variance);
  at::Tensor(norm.batches).add_(1);
}

namespace {

void record(const BatchMoments& moments) {
  if (collected)
    collected->moments.push_back(moments);
  else
    moments.update_averages();
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& x, const BatchNormTensors& norm, const BatchNormOptions& options,
                      bool batch_statistics) {
  if (batch_statistics && x.dim() == 4 && suits_kernels(x) && suits_kernels(norm.weight) &&
      !TwiceDifferentiable::wanted()) {
    const NormedBatch normed = batch_norm_maps(x, norm.weight, norm.bias, options.epsilon);
    record({norm, options, normed.mean, normed.variance});
    return normed.y;
  }
  const at::ScalarType type = at::isReducedFloatingType(x.scalar_type()) ? torch::kFloat : x.scalar_type();
  // torch reads some of these as contiguous, whatever their strides.
  const auto ready = [&](const at::Tensor& t) { return t.to(type).contiguous(t.suggest_memory_format()); };
  at::Tensor mean = norm.running_mean.to(type), variance = norm.running_var.to(type);
  if (batch_statistics) mean = at::zeros_like(mean), variance = at::ones_like(variance);
  // With a momentum of 1 torch's running averages are the moments of the batch.
  const at::Tensor y = at::batch_norm(ready(x), ready(norm.weight), ready(norm.bias), mean, variance, batch_statistics,
                                      /*momentum=*/1, options.epsilon, /*cudnn_enabled=*/false);
  if (batch_statistics) record({norm, options, mean, variance});
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
