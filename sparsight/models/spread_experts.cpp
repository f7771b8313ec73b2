#include "sparsight/models/spread_experts.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/nn/init.h"

namespace sparsight {
namespace {

// Calls visit(path, layer) for each MoE layer whose experts are spread.
template <class Visit>
void for_each_spread_layer(const torch::nn::Module& model, const Visit& visit) {
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    if (auto* const layer = dynamic_cast<MoeLayer*>(item.value().get()))
      if (layer->expert_ranks().parts->size() > 1) visit(item.key(), *layer);
}

int64_t own_count(const MoeLayer& layer) { return layer.expert_count() / layer.expert_ranks().parts->size(); }

}  // namespace

SpreadParameters::SpreadParameters(const torch::nn::Module& model) {
  for_each_spread_layer(model, [&](const std::string& path, MoeLayer& layer) {
    ranks_ = layer.expert_ranks();
    for (const auto& item : layer.experts().named_parameters())
      own_[cat(path, ".experts.", item.key())] = own_count(layer);
  });
}

int64_t SpreadParameters::own_experts(const std::string& name) const {
  for (size_t begin = 0; begin <= name.size();) {  // the parts between slashes
    const size_t end = std::min(name.find('/', begin), name.size());
    if (const auto found = own_.find(name.substr(begin, end - begin)); found != own_.end()) return found->second;
    begin = end + 1;
  }
  return 0;
}

bool SpreadParameters::is_part(const std::string& name, const at::Tensor& tensor) const {
  const int64_t own = own_experts(name);
  return own > 0 && tensor.dim() > 0 && tensor.size(0) == own;
}

at::Tensor SpreadParameters::own_part(const std::string& name, const at::Tensor& tensor) const {
  const int64_t own = own_experts(name), parts = ranks_.parts->size();
  if (own == 0 || tensor.dim() == 0 || tensor.size(0) != own * parts) return tensor;
  return tensor.narrow(0, ranks_.parts->rank() * own, own);
}

void initialize_spread_experts(torch::nn::Module& model, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  for_each_spread_layer(model, [&](const std::string& path, MoeLayer& layer) {
    auto* const experts = dynamic_cast<Initialized*>(&layer.experts());
    if (!experts) return;
    const dist::Group& parts = *layer.expert_ranks().parts;
    const std::vector<at::Tensor> parameters = layer.experts().parameters();
    for (const at::Tensor& parameter : parameters) {
      std::vector<int64_t> repeats(static_cast<size_t>(parameter.dim()), 1);
      repeats.front() = parts.size();
      parameter.set_data(parameter.detach().repeat(repeats));
    }
    experts->initialize({seed, path + ".experts"});
    const int64_t own = own_count(layer);
    for (const at::Tensor& parameter : parameters)
      parameter.set_data(parameter.detach().narrow(0, parts.rank() * own, own).clone());
  });
}

}  // namespace sparsight
