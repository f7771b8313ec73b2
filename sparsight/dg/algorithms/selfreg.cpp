#include "sparsight/dg/algorithms/selfreg.h"

#include <algorithm>
#include <map>

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/shuffle.h"
#include "sparsight/data/transforms/batch_transform.h"
#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"

namespace sparsight {
namespace {

// Its batch norms only ever see training batches, so that they have no running statistics.
class Projection {
 public:
  Projection(int64_t width, const StepRandom& random) {
    constexpr int64_t kWidthOfResNet = 2048;
    const int64_t hidden = width == kWidthOfResNet ? width : 2 * width;
    const int64_t widths[] = {width, hidden, hidden, width};
    for (int i = 0; i < 3; ++i) {
      layers_.emplace_back(widths[i], widths[i + 1], random, cat("selfreg.", i));
      scales_.push_back(at::ones({widths[i + 1]}).set_requires_grad(true));
      shifts_.push_back(at::zeros({widths[i + 1]}).set_requires_grad(true));
    }
  }

  at::Tensor operator()(const at::Tensor& features) const {
    at::Tensor x = features;
    for (size_t i = 0; i < layers_.size(); ++i) {
      x = at::batch_norm(layers_[i](x), scales_[i], shifts_[i], {}, {}, /*training=*/true, 0.1, 1e-5, false);
      if (i + 1 < layers_.size()) x = x.relu();
    }
    return x;
  }

  NamedTensors tensors() const {
    NamedTensors all;
    for (size_t i = 0; i < layers_.size(); ++i) {
      all.emplace_back(cat(i, ".weight"), layers_[i].weight);
      all.emplace_back(cat(i, ".bias"), layers_[i].bias);
      all.emplace_back(cat(i, ".scale"), scales_[i]);
      all.emplace_back(cat(i, ".shift"), shifts_[i]);
    }
    return all;
  }

 private:
  std::vector<LinearLayer> layers_;
  std::vector<at::Tensor> scales_, shifts_;
};

class SelfReg : public DomainAlgorithm {
 public:
  SelfReg(const SelfRegOptions& options, const AlgorithmContext& context)
      : SelfReg(options, context, Projection(probe_widths(*context.model).features, initial_random(context))) {}

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    const at::Tensor risk = pass.risk(), &l = pass.output.logits;
    const at::Tensor z = pass.output.features.to(at::kFloat), q = projection_(z);
    RandomStream of_lambda = pass.update.random.stream("selfreg.lambda");
    const double lambda = sample_beta(options_.alpha, of_lambda);
    const at::Tensor &labels = pass.joined.labels,
                     a = same_class_partners(labels, pass.update.random.stream("selfreg.1")),
                     b = same_class_partners(labels, pass.update.random.stream("selfreg.2"));
    const auto of = [](const at::Tensor& x, const at::Tensor& partners) { return x.index_select(0, partners); };
    const auto mixed = [&](const at::Tensor& x) { return lambda * of(x, a) + (1 - lambda) * of(x, b); };
    const at::Tensor single = at::mse_loss(l, of(l, a)) + options_.feature_weight * at::mse_loss(z, of(q, a));
    const at::Tensor mix = at::mse_loss(l, mixed(l)) + options_.feature_weight * at::mse_loss(z, mixed(q));
    const at::Tensor penalty = lambda * single + (1 - lambda) * mix;
    log_value(log, "penalty", penalty);
    return risk + std::min(risk.item<double>(), 1.0) * penalty;
  }

 private:
  SelfReg(const SelfRegOptions& options, const AlgorithmContext& context, const Projection& projection)
      : DomainAlgorithm(context, 1, {.own = trained(projection.tensors(), "selfreg.")}),
        options_(options),
        projection_(projection) {}

  SelfRegOptions options_;
  Projection projection_;
};

}  // namespace

void SelfRegOptions::declare(OptionSet& set) {
  set.real("feature_weight", &feature_weight, {0, 1e9}, "weight of the distances between features (w)");
  set.real("alpha", &alpha, {1e-6, 1e6}, "of the distribution Beta(alpha, alpha) of lambda");
}

at::Tensor same_class_partners(const at::Tensor& labels, RandomStream random) {
  std::map<int64_t, std::vector<int64_t>> positions;
  const at::Tensor in = labels.contiguous();
  for (int64_t i = 0; i < in.numel(); ++i) positions[in.const_data_ptr<int64_t>()[i]].push_back(i);
  std::vector<int64_t> partner(static_cast<size_t>(in.numel()));
  for (const auto& [label, own] : positions) {
    std::vector<int64_t> others = own;
    shuffle(others, random);
    for (size_t i = 0; i < own.size(); ++i) partner[static_cast<size_t>(own[i])] = others[i];
  }
  return at::tensor(partner);
}

std::shared_ptr<Algorithm> make_selfreg(const SelfRegOptions& options, const AlgorithmContext& context) {
  return std::make_shared<SelfReg>(options, context);
}

}  // namespace sparsight
