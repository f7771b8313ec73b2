#include "sparsight/papers/gmoe/theory/set_network.h"

#include <cmath>
#include <memory>

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "sparsight/core/error.h"
#include "sparsight/nn/linear.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/papers/gmoe/theory/training_parts.h"

namespace sparsight::gmoe {
namespace {

constexpr int64_t kElements = 8, kCodes = 32;
constexpr double kNoise = 0.3;

// Encodes the elements of one set.
class SetEncoder : public torch::nn::Module {
 public:
  explicit SetEncoder(SetPooling pooling)
      : pooling_(pooling),
        fc1_(register_module("fc1", Linear(1, kCodes))),
        fc2_(register_module("fc2", Linear(kCodes, kCodes))) {}

  at::Tensor forward(const at::Tensor& elements) {  // [N,8] -> [N,32]
    const at::Tensor codes = at::relu(fc2_->forward(at::relu(fc1_->forward(elements.unsqueeze(2)))));
    return pooling_ == SetPooling::max ? std::get<0>(codes.max(1)) : codes.mean(1);
  }

 private:
  SetPooling pooling_;
  Linear fc1_, fc2_;
};

class SetNetwork : public torch::nn::Module {
 public:
  explicit SetNetwork(SetPooling pooling)
      : invariant_(register_module("invariant", std::make_shared<SetEncoder>(pooling))),
        spurious_(register_module("spurious", std::make_shared<SetEncoder>(pooling))),
        head_(register_module("head", Linear(2 * kCodes, 1))) {}

  at::Tensor forward(const SetSamples& samples) {  // [N]
    const at::Tensor codes = at::cat({invariant_->forward(samples.invariant), spurious_->forward(samples.spurious)}, 1);
    return head_->forward(codes).squeeze(1);
  }

 private:
  std::shared_ptr<SetEncoder> invariant_, spurious_;
  Linear head_;
};

SetSamples select(const SetSamples& samples, const at::Tensor& index) {
  return {samples.invariant.index_select(0, index), samples.spurious.index_select(0, index),
          samples.target.index_select(0, index)};
}

double error_on(SetNetwork& network, const SetSamples& samples) {
  const at::NoGradGuard no_grad;
  return std::sqrt(at::mse_loss(network.forward(samples), samples.target).item<double>());
}

}  // namespace

SetSamples sample_sets(int64_t samples, double independent, uint64_t seed, const char* purpose) {
  const auto uniform = [&](at::IntArrayRef sizes, const char* what) {
    return uniform_like(at::empty({0}), sizes, RandomStream(seed, cat("sets.", purpose, ".", what)));
  };
  const at::Tensor t = uniform({samples, 1}, "target");
  const at::Tensor place = (uniform({samples, 1}, "place") * kElements).to(at::kLong);
  const at::Tensor values = (uniform({samples, kElements}, "values") * t).scatter(1, place, t);
  const at::Tensor other = uniform({samples, 1}, "other");
  const at::Tensor mean = at::where(uniform({samples, 1}, "independent") < independent, other, t);
  at::Tensor noise = at::empty({samples, kElements});
  fill_normal(noise, RandomStream(seed, cat("sets.", purpose, ".noise")), 0, kNoise);
  return {values, noise - noise.mean(1, true) + mean, t.squeeze(1)};
}

SetErrors train_on_sets(const SetTraining& training) {
  const auto network = std::make_shared<SetNetwork>(training.pooling);
  initialize_as_torch(*network, training.seed);
  const SetSamples train = sample_sets(training.samples, training.independent, training.seed, "train");
  train_minibatches(*network, {training.samples, training.steps, training.batch, training.lr, training.seed},
                    [&](const at::Tensor& index, int64_t) {
                      const SetSamples batch = select(train, index);
                      return at::mse_loss(network->forward(batch), batch.target);
                    });
  const auto on = [&](double independent, const char* purpose) {
    return error_on(*network, sample_sets(training.test_samples, independent, training.seed, purpose));
  };
  return {on(training.independent, "test"), on(1, "shifted")};
}

}  // namespace sparsight::gmoe
