#include "sparsight/models/upcycle.h"

#include <string_view>

#include "sparsight/core/error.h"
#include "sparsight/nn/init.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {
namespace {

// The dense MLP's tensor that each expert parameter is copied from.
const std::map<std::string, std::string> kDenseName{
    {"w1", "fc1.weight"}, {"b1", "fc1.bias"}, {"w2", "fc2.weight"}, {"b2", "fc2.bias"}};
constexpr char kExperts[] = ".experts.";

// The dense tensor in an expert's layout: a linear layer has [out,in], experts have [in,out].
at::Tensor as_expert(const at::Tensor& dense) { return dense.dim() == 2 ? dense.t() : dense; }

bool fits(const at::Tensor& dense, const at::Tensor& experts) {
  return dense.is_floating_point() && dense.dim() == experts.dim() - 1 &&
         as_expert(dense).sizes() == experts.sizes().slice(1);
}

// "features.16.conv.2.weight" of "features.16.moe.experts.3.conv.2.weight", "blocks.2.shortcut.weight" of
// "blocks.2.shortcut.0.weight"; "" for other names.
std::string dense_block_name(const std::string& name) {
  constexpr std::string_view kBank = ".moe.experts.", kShortcut = ".shortcut.0.";
  if (const size_t at = name.find(kBank); at != std::string::npos) {
    const size_t number = at + kBank.size(), rest = name.find('.', number);
    const bool is_number =
        rest != std::string::npos && rest > number && name.find_first_not_of("0123456789", number) == rest;
    return is_number ? name.substr(0, at) + name.substr(rest) : "";
  }
  const size_t at = name.find(kShortcut);
  return at == std::string::npos ? "" : name.substr(0, at) + ".shortcut." + name.substr(at + kShortcut.size());
}

at::Tensor with_noise(const at::Tensor& copies, double noise, const RandomStream& stream) {
  at::Tensor samples = at::empty(copies.sizes(), copies.options().dtype(at::kFloat));
  fill_normal(samples, stream, 0, noise * copies.std().item<double>());
  return copies + samples;
}

std::optional<DerivedTensor> copied_block(const std::string& name, const at::Tensor& target,
                                          const std::map<std::string, at::Tensor>& file,
                                          const UpcycleOptions& options) {
  const std::string dense = dense_block_name(name);
  const auto source = dense.empty() ? file.end() : file.find(dense);
  if (source == file.end() || source->second.sizes() != target.sizes()) return std::nullopt;
  if (options.random) return DerivedTensor{target.clone(), cat("random, not ", dense), {dense}};
  const bool noisy = options.noise > 0 && target.dim() == 4;
  const at::Tensor copy =
      noisy ? with_noise(source->second, options.noise, InitRandom{options.seed, name}.stream("upcycle"))
            : source->second;
  return DerivedTensor{copy, cat("upcycled: a copy of ", dense, noisy ? " with noise" : ""), {dense}};
}

}  // namespace

WeightDeriver upcycle_dense_mlps(const ImageModel& model, const UpcycleOptions& options) {
  std::map<std::string, at::Tensor> parameters;
  for (const auto& item : model.named_parameters()) parameters[item.key()] = item.value();
  return [parameters, options](const std::string& name, const at::Tensor& target,
                               const std::map<std::string, at::Tensor>& file) -> std::optional<DerivedTensor> {
    if (auto copy = copied_block(name, target, file, options)) return copy;
    const size_t position = name.rfind(kExperts);
    if (position == std::string::npos) return std::nullopt;
    const std::string layer = name.substr(0, position) + ".", experts = layer + "experts.";
    const auto own = kDenseName.find(name.substr(experts.size()));
    if (own == kDenseName.end()) return std::nullopt;
    // All parameters of the layer's experts or none: half an MLP is useless.
    for (const auto& [parameter, dense] : kDenseName) {
      const auto expert = parameters.find(experts + parameter);
      if (expert == parameters.end()) continue;
      const auto source = file.find(layer + dense);
      if (source == file.end() || !fits(source->second, expert->second)) return std::nullopt;
    }
    if (!parameters.count(experts + "w2") || parameters.count(experts + "w3"))
      return std::nullopt;  // not one hidden layer
    const std::string dense = layer + own->second;
    if (options.random) return DerivedTensor{target.clone(), cat("random, not ", dense), {dense}};
    at::Tensor copies = as_expert(file.at(dense)).unsqueeze(0).expand_as(target);
    std::string how = cat("upcycled: ", target.size(0), " copies of ", dense);
    if (options.noise > 0 && target.dim() == 3) {
      copies = with_noise(copies, options.noise, InitRandom{options.seed, name}.stream("upcycle"));
      how += " with noise";
    }
    return DerivedTensor{copies, how, {dense}};
  };
}

}  // namespace sparsight
