#include "sparsight/dg/algorithms/arm.h"

#include <cmath>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/nn/init.h"

namespace sparsight {
namespace {

constexpr int64_t kContextKernel = 5, kContextChannels = 64;

class ContextNetwork {
 public:
  ContextNetwork(int64_t channels, const StepRandom& random) : mix_(at::zeros({channels}).set_requires_grad(true)) {
    const int64_t widths[] = {channels, kContextChannels, kContextChannels, 1};
    for (int i = 0; i < 3; ++i) {
      const int64_t in = widths[i], out = widths[i + 1];
      at::Tensor weight = at::zeros({out, in, kContextKernel, kContextKernel}), bias = at::zeros({out});
      const double bound = 1 / std::sqrt(static_cast<double>(in * kContextKernel * kContextKernel));
      init_uniform(weight, bound, random.stream(cat("arm.", i, ".weight")));
      init_uniform(bias, bound, random.stream(cat("arm.", i, ".bias")));
      convs_.push_back({weight.set_requires_grad(true), bias.set_requires_grad(true)});
      if (i < 2)
        norms_.push_back({at::ones({out}).set_requires_grad(true), at::zeros({out}).set_requires_grad(true),
                          at::zeros({out}), at::ones({out})});
    }
  }

  // x + v c for x [B,C,H,W], all of one support batch. Training updates the running statistics.
  at::Tensor adapted(const at::Tensor& x, bool training) const {
    at::Tensor c = x;
    for (size_t i = 0; i < convs_.size(); ++i) {
      c = at::conv2d(c, convs_[i].weight, convs_[i].bias, /*stride=*/1, /*padding=*/kContextKernel / 2);
      if (i >= norms_.size()) break;
      const Norm& n = norms_[i];
      c = at::batch_norm(c, n.weight, n.bias, n.mean, n.variance, training, 0.1, 1e-5, false).relu();
    }
    return x + mix_.view({1, -1, 1, 1}) * c.mean(0, true);
  }

  NamedTensors parameters() const {
    NamedTensors all{{"arm.mix", mix_}};
    for (size_t i = 0; i < convs_.size(); ++i) {
      all.emplace_back(cat("arm.", i, ".weight"), convs_[i].weight);
      all.emplace_back(cat("arm.", i, ".bias"), convs_[i].bias);
    }
    for (size_t i = 0; i < norms_.size(); ++i) {
      all.emplace_back(cat("arm.", i, ".norm.weight"), norms_[i].weight);
      all.emplace_back(cat("arm.", i, ".norm.bias"), norms_[i].bias);
    }
    return all;
  }
  NamedTensors statistics() const {
    NamedTensors all;
    for (size_t i = 0; i < norms_.size(); ++i) {
      all.emplace_back(cat("arm.", i, ".norm.mean"), norms_[i].mean);
      all.emplace_back(cat("arm.", i, ".norm.variance"), norms_[i].variance);
    }
    return all;
  }

 private:
  struct Conv {
    at::Tensor weight, bias;
  };
  struct Norm {
    at::Tensor weight, bias, mean, variance;
  };
  at::Tensor mix_;  // v, [C]
  std::vector<Conv> convs_;
  std::vector<Norm> norms_;
};

constexpr std::string_view kStatistics = "arm.statistics/";

class Arm : public DomainAlgorithm {
 public:
  explicit Arm(const AlgorithmContext& context)
      : Arm(context, ContextNetwork(context.model->definition() ? context.model->definition()->image.channels : 3,
                                    initial_random(context))) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    const std::vector<Batch> domains = split_domains(minibatches);
    LossStep step(this->context(), weights(), context, 1);
    std::vector<at::Tensor> images;
    for (const Batch& batch : domains) images.push_back(network_.adapted(batch.images, /*training=*/true));
    const Batch joined = join_batches(domains);
    const ModelOutput output = step.forward(joined, at::cat(images));
    step.add(joined, {output}, task_loss(output.logits, joined));
    return step.finish();
  }

  ModelOutput predict(const ModelInput& input) override {
    const int64_t images = input.images.size(0);
    const int64_t support = support_ > 0 && images % support_ == 0 ? support_ : images;
    std::vector<at::Tensor> parts;
    for (const at::Tensor& part : input.images.split(support)) parts.push_back(network_.adapted(part, false));
    ModelInput adapted = input;
    adapted.images = at::cat(parts);
    return Algorithm::predict(adapted);
  }
  NamedTensors prediction_tensors() const override {
    NamedTensors all = network_.parameters();
    for (const auto& named : network_.statistics()) all.push_back(named);
    return all;
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    add_tensors(state, kStatistics, network_.statistics());
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    load_tensors(network_.statistics(), state, kStatistics);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override { return pass.risk(); }

 private:
  Arm(const AlgorithmContext& context, const ContextNetwork& network)
      : DomainAlgorithm(context, 1, {.own = trained(network.parameters(), "")}), network_(network) {
    if (context.config.contains("loader")) support_ = context.config.at("loader").value("batch", int64_t{0});
  }

  ContextNetwork network_;
  int64_t support_ = 0;  // images of a domain in a step
};

}  // namespace

std::vector<ProtocolDefault> arm_defaults() { return {{kPhotographs, "loader.batch", 8, ""}}; }

std::shared_ptr<Algorithm> make_arm(const ArmOptions&, const AlgorithmContext& context) {
  return std::make_shared<Arm>(context);
}

}  // namespace sparsight
