#include "sparsight/train/algorithm_context.h"

#include <algorithm>
#include <set>

#include "sparsight/core/config.h"
#include "sparsight/core/printable.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/norm.h"
#include "sparsight/optim/parameter_groups.h"

namespace sparsight {
namespace {

bool has_prefix(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

bool has_part(const std::string& name, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

// The names and their prefixes up to each dot.
std::vector<std::string> prefixes(const std::vector<std::string>& names) {
  std::vector<std::string> all = names;
  for (const std::string& name : names)
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      all.push_back(name.substr(0, dot));
  return all;
}

// The parameters of layer norms, whose names need not say so: ConvNeXt's "stem.1.weight" is named as in timm.
std::set<std::string> layer_norm_parameters(const torch::nn::Module& model) {
  std::set<std::string> names;
  model.apply([&](const std::string& path, const torch::nn::Module& module) {
    if (dynamic_cast<const LayerNormImpl*>(&module))
      for (const auto& item : module.named_parameters()) names.insert(path + "." + item.key());
  });
  return names;
}

}  // namespace

std::vector<OptimizedParameter> trainable_parameters(const torch::nn::Module& model, const TrainOptions& options) {
  std::vector<OptimizedParameter> parameters;
  std::vector<std::string> names;
  const bool norms_decay = std::ranges::find(options.no_decay, "norm") == options.no_decay.end();
  const std::set<std::string> norms = norms_decay ? std::set<std::string>{} : layer_norm_parameters(model);
  for (auto& item : model.named_parameters()) {
    names.push_back(item.key());
    const bool frozen = has_prefix(item.key(), options.freeze);
    item.value().set_requires_grad(!frozen);
    const bool decays = !has_part(item.key(), options.no_decay) && !norms.contains(item.key());
    if (!frozen) parameters.push_back({item.key(), item.value(), decays});
  }
  for (const std::string& prefix : options.freeze)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(prefix); }))
      fail_usage("train.freeze: no parameter name starts with \"", printable(prefix), "\"",
                 did_you_mean(nearest_name(prefix, prefixes(names))));
  if (parameters.empty()) fail_usage("train.freeze freezes every parameter; leave at least one to train");
  const std::string where = "train.param_groups";
  apply_groups(parameter_groups_from(options.param_groups, where), where, parameters);
  return parameters;
}

std::shared_ptr<Optimizer> make_optimizer(const AlgorithmContext& context, std::vector<OptimizedParameter> parameters) {
  return make_component(optimizers(), context.config, "optimizer", std::move(parameters));
}

double base_learning_rate(const AlgorithmContext& context) {
  return context.config.at("optimizer").at("lr").get<double>();
}

std::shared_ptr<ImageModel> copy_of_model(const AlgorithmContext& context) { return clone_model(*context.model); }

}  // namespace sparsight
