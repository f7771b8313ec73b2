#include "sparsight/dg/algorithms/miro.h"

#include <cmath>

#include <ATen/ops/full.h>
#include <ATen/ops/softplus.h>

#include "sparsight/core/nearest_name.h"
#include "sparsight/dg/algorithms/mlp_layers.h"
#include "sparsight/dg/algorithms/model_probe.h"
#include "sparsight/io/weights.h"
#include "sparsight/optim/precision.h"

namespace sparsight {
namespace {

constexpr double kVarianceFloor = 1e-5, kFirstVariance = 0.1;
constexpr std::string_view kPretrained = "miro.pretrained/";

int64_t channel_dimension(const at::Tensor& z) { return z.dim() == 4 ? 1 : z.dim() - 1; }

// All taps but those of what follows the last block and repeats it, norms and attention pooling; or those asked for.
std::vector<std::string> select_layers(ImageModel& model, const std::vector<std::string>& wanted) {
  const std::vector<std::string> all = model.tap_names();
  std::vector<std::string> layers;
  for (const std::string& name : wanted) layers.push_back(all.at(find_position(name, all, "layer")));
  if (wanted.empty())
    for (const std::string& name : all)
      if (name != "norm" && name != "fc_norm" && name != "head.norm" && name != "attn_pool") layers.push_back(name);
  if (layers.empty()) fail_usage("algorithm miro needs a model with intermediate outputs, which this one has not");
  return layers;
}

NamedTensors new_biases(ImageModel& model, const std::vector<std::string>& layers) {
  NamedTensors biases;
  const ModelOutput output = probe_model(model, layers);
  for (const std::string& layer : layers) {
    const at::Tensor& z = output.taps.at(layer);
    biases.emplace_back("miro." + layer,
                        at::full({z.size(channel_dimension(z))}, miro_start(kFirstVariance)).set_requires_grad(true));
  }
  return biases;
}

std::vector<OptimizedParameter> faster(std::vector<OptimizedParameter> parameters, double factor) {
  for (OptimizedParameter& parameter : parameters) parameter.lr_factor = factor;
  return parameters;
}

class Miro : public DomainAlgorithm {
 public:
  Miro(const MiroOptions& options, const AlgorithmContext& context)
      : Miro(options, context, select_layers(*context.model, options.layers)) {}

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override {
    LossStep step(this->context(), weights(), context, 1);
    const std::vector<Batch> domains = split_domains(minibatches);
    const Batch joined = join_batches(domains);
    const DomainPass pass{domains, joined, step.forward(joined, joined.images, 0, layers_), context};
    NamedMeans log;
    step.add(joined, {pass.output}, objective(pass, log));
    UpdateResult result = step.finish();
    result.means.add(log);
    return result;
  }

  AlgorithmState state() const override {
    AlgorithmState state = DomainAlgorithm::state();
    add_tensors(state, kPretrained, named_weights(*pretrained_));
    return state;
  }
  void load_state(const AlgorithmState& state) override {
    DomainAlgorithm::load_state(state);
    load_tensors(named_weights(*pretrained_), state, kPretrained);
  }

 protected:
  at::Tensor objective(const DomainPass& pass, NamedMeans& log) override {
    ModelOutput fixed;
    {
      const at::NoGradGuard no_grad;
      const AutocastScope autocast(use_bf16(context().train.precision));
      fixed = pretrained_->forward({.images = pass.joined.images, .taps = layers_});
    }
    at::Tensor sum = at::zeros({});
    for (size_t l = 0; l < layers_.size(); ++l)
      sum = sum + miro_term(pass.output.taps.at(layers_[l]), fixed.taps.at(layers_[l]), biases_[l].second);
    log_value(log, "penalty", sum);
    return pass.risk() + options_.lambda * sum;
  }

 private:
  Miro(const MiroOptions& options, const AlgorithmContext& context, const std::vector<std::string>& layers)
      : Miro(options, context, layers, new_biases(*context.model, layers)) {}
  Miro(const MiroOptions& options, const AlgorithmContext& context, const std::vector<std::string>& layers,
       const NamedTensors& biases)
      : DomainAlgorithm(context, 1, {.own = faster(trained(biases, ""), options.lr_factor)}),
        options_(options),
        layers_(layers),
        biases_(biases),
        pretrained_(copy_of_model(context)) {}

  MiroOptions options_;
  std::vector<std::string> layers_;
  NamedTensors biases_;  // b_l
  std::shared_ptr<ImageModel> pretrained_;
};

}  // namespace

void MiroOptions::declare(OptionSet& set) {
  set.real("lambda", &lambda, {0, 1e9}, "weight of the regulariser").search = {"lambda", ""};
  set.real("lr_factor", &lr_factor, {0, 1e6}, "learning rate of the variances, divided by that of the model");
  set.strings("layers", &layers, "outputs that are compared, such as [\"blocks.3\"]; empty: stem and all blocks");
}

std::vector<ProtocolDefault> miro_defaults() {
  const struct {
    const char* set;
    double lambda, lr, dropout, weight_decay;
  } rows[] = {{"pacs", .01, 3e-5, 0, 0},
              {"vlcs", .01, 1e-5, .5, 1e-6},
              {"office_home", .1, 3e-5, .1, 1e-6},
              {"terra_incognita", .1, 3e-5, 0, 1e-4},
              {"domain_net", .1, 3e-5, .1, 0}};
  std::vector<ProtocolDefault> all;
  for (const auto& row : rows) {
    all.push_back({row.set, "algorithm.lambda", row.lambda});
    all.push_back({row.set, "optimizer.lr", row.lr});
    all.push_back({row.set, "model.dropout", row.dropout});
    all.push_back({row.set, "optimizer.weight_decay", row.weight_decay});
  }
  return all;
}

at::Tensor miro_term(const at::Tensor& z, const at::Tensor& z0, const at::Tensor& b) {
  at::Tensor variance = at::softplus(b) + kVarianceFloor;
  if (z.dim() == 4) variance = variance.view({-1, 1, 1});
  const at::Tensor difference = z.to(at::kFloat) - z0.to(at::kFloat);
  return (difference.square() / variance + variance.log()).mean() / 2;
}

double miro_start(double variance) { return std::log(std::expm1(variance - kVarianceFloor)); }

std::shared_ptr<Algorithm> make_miro(const MiroOptions& options, const AlgorithmContext& context) {
  return std::make_shared<Miro>(options, context);
}

}  // namespace sparsight
