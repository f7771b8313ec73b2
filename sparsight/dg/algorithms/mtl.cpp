#include "sparsight/dg/algorithms/mtl.h"

#include <cmath>

#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/dg/algorithms/saved_tensor.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

constexpr const char* kEmbeddings = "mtl/embeddings";

at::Tensor new_weight(const AlgorithmContext& context) {
  const OutputWidths widths = probe_widths(*context.model);
  at::Tensor weight = at::zeros({widths.classes, widths.features});
  init_uniform(weight, 1 / std::sqrt(2.0 * static_cast<double>(widths.features)),
               initial_random(context).stream("mtl.weight"));
  return weight.set_requires_grad(true);
}

class Mtl : public DomainAlgorithm {
 public:
  Mtl(const MtlOptions& options, const AlgorithmContext& context) : Mtl(options, context, new_weight(context)) {}

  ModelOutput predict(const ModelInput& input) override {
    ModelOutput output = Algorithm::predict(input);
    if (!noise()) output.logits = output.logits + at::linear(output.features.to(at::kFloat).mean(0, true), weight_);
    return output;
  }
  NamedTensors prediction_tensors() const override { return {{"mtl.weight", weight_}}; }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    save_tensor(state, kEmbeddings, embeddings_);
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    embeddings_ = saved_tensor(state, kEmbeddings);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans&) override {
    const std::vector<at::Tensor> features = pass.features(), logits = pass.logits();
    std::vector<at::Tensor> risks, next;
    for (size_t e = 0; e < features.size(); ++e) {
      const at::Tensor mean = features[e].to(at::kFloat).mean(0);
      const at::Tensor before = embeddings_.defined() ? embeddings_[static_cast<int64_t>(e)] : at::zeros_like(mean);
      next.push_back(options_.ema * mean + (1 - options_.ema) * before);
      const at::Tensor embedding =
          noise() ? normal_like(mean, features[e].sizes(), pass.update.random.stream(cat("mtl.noise.", e)))
                  : next.back().unsqueeze(0);
      risks.push_back(task_loss(logits[e] + at::linear(embedding, weight_), pass.domains[e]));
    }
    next_ = at::stack(next).detach();
    return at::stack(risks).sum();
  }
  void accept() override { embeddings_ = next_; }

 private:
  Mtl(const MtlOptions& options, const AlgorithmContext& context, const at::Tensor& weight)
      : DomainAlgorithm(context, 1, {.own = trained({{"mtl.weight", weight}}, "")}),
        options_(options),
        weight_(weight) {}
  bool noise() const { return options_.embedding == "noise"; }

  MtlOptions options_;
  at::Tensor weight_;             // [K,D]
  at::Tensor embeddings_, next_;  // [E,D]
};

}  // namespace

void MtlOptions::declare(OptionSet& set) {
  set.real("ema", &ema, {0, 1}, "share of the batch's mean features in the domain's embedding").search = {
      "mtl_ema", "{0.5,0.9,0.99,1.0}"};
  set.choice("embedding", &embedding, {"feature_mean", "noise"},
             "what the classifier sees beside the features; noise is what DomainBed's code does");
}

std::shared_ptr<Algorithm> make_mtl(const MtlOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Mtl>(options, context);
}

}  // namespace sparsight
