#include "sparsight/models/prune_experts.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/shared_router.h"

namespace sparsight {
namespace {

// The name of a module among those of the model.
std::string path_of_module(const ImageModel& model, const torch::nn::Module* module) {
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    if (item.value().get() == module) return item.key();
  SPARSIGHT_CHECK(false);
}

// The weight of each member of the mean. Where none was ever used, the expert that stays is left as it is.
std::vector<double> member_weights(const ExpertPlan& plan, const std::vector<int64_t>& members, int64_t stays) {
  std::vector<double> weights;
  double total = 0;
  for (const int64_t member : members) {
    weights.push_back(plan.weight[static_cast<size_t>(member)]);
    total += weights.back();
  }
  if (total > 0) return weights;
  for (size_t i = 0; i < members.size(); ++i) weights[i] = members[i] == stays ? 1 : 0;
  return weights;
}

}  // namespace

std::vector<RoutedLayers> routed_layers(const ImageModel& model) {
  std::vector<RoutedLayers> all;
  for_each_router_owner(model, [&](HasRouter& owner) {
    const Router* const router = owner.own_router();
    all.push_back({.routing = owner.routing_name(),
                   .router_path = path_of_module(model, router),
                   .router = router,
                   .gates = owner.policy().gates});
  });
  for (const auto& item : model.named_modules("", /*include_self=*/false)) {
    auto* const layer = dynamic_cast<MoeLayer*>(item.value().get());
    if (!layer) continue;
    const std::string& routing = layer->own_router() ? layer->routing_name() : SharedRouter::routing();
    const auto routed = std::ranges::find(all, routing, &RoutedLayers::routing);
    SPARSIGHT_CHECK(routed != all.end());
    routed->experts = layer->expert_count();
    routed->layers[item.key()] = layer;
  }
  return all;
}

void check_removal(const RoutedLayers& routed, bool merges) {
  const RouterRemoval removal = routed.router->expert_removal();
  if (!removal.refusal.empty())
    fail("no expert of ", routed.routing, " can be removed: its router ", routed.router->registered_name(), " ",
         removal.refusal);
  for (const auto& [path, layer] : routed.layers) {
    const ExpertTensors tensors = layer->experts().expert_tensors();
    if (!tensors.refusal.empty()) fail("no expert of ", path, " can be removed: ", tensors.refusal);
    if (merges && !tensors.merge_refusal.empty())
      fail("the experts of ", path, " cannot be merged: ", tensors.merge_refusal, "; leave out --merge");
  }
}

bool keeps_answers(const RoutedLayers& routed) {
  const KeptRouting keeps = routed.router->expert_removal().keeps;
  return keeps == KeptRouting::gates || (keeps == KeptRouting::choices && routed.gates != GateRule::router);
}

bool ExpertPlan::merges() const {
  for (int64_t e = 0; e < std::ssize(into); ++e)
    if (!stays(e) && into[static_cast<size_t>(e)] != kRemoved) return true;
  return false;
}

std::vector<int64_t> ExpertPlan::kept() const {
  std::vector<int64_t> experts;
  for (int64_t e = 0; e < std::ssize(into); ++e)
    if (stays(e)) experts.push_back(e);
  return experts;
}

ExpertPruner::ExpertPruner(const ImageModel& model, const std::map<std::string, ExpertPlan>& plans) {
  const torch::NoGradGuard no_grad;
  for (const RoutedLayers& routed : routed_layers(model)) {
    const auto given = plans.find(routed.routing);
    for (const auto& [path, layer] : routed.layers)
      experts_[path] = given == plans.end() ? routed.experts : std::ssize(given->second.kept());
    if (given == plans.end()) continue;
    const auto plan = std::make_shared<const ExpertPlan>(given->second);
    SPARSIGHT_CHECK(std::ssize(plan->into) == routed.experts && plan->into.size() == plan->weight.size());
    SPARSIGHT_CHECK(!plan->kept().empty());
    check_removal(routed, plan->merges());
    add_router(routed, plan);
    for (const auto& [path, layer] : routed.layers) add_experts(path, *layer, plan);
  }
}

void ExpertPruner::add_router(const RoutedLayers& routed, const std::shared_ptr<const ExpertPlan>& plan) {
  std::map<std::string, at::Tensor> own;
  for (const auto& [name, tensor] : named_weights(*routed.router)) own[name] = tensor;
  for (const ExpertAxis& axis : routed.router->expert_removal().tensors) {
    const at::Tensor& tensor = own.at(axis.tensor);
    SPARSIGHT_CHECK(tensor.size(axis.axis) == routed.experts);
    changes_[routed.router_path + "." + axis.tensor] = {
        .plan = plan, .sizes = tensor.sizes().vec(), .tensor = axis.tensor, .axis = axis.axis};
  }
}

void ExpertPruner::add_experts(const std::string& path, MoeLayer& layer,
                               const std::shared_ptr<const ExpertPlan>& plan) {
  const ExpertTensors declared = layer.experts().expert_tensors();
  const NamedTensors tensors = named_weights(layer.experts());
  const std::string prefix = path + ".experts.";
  if (declared.modules) return add_modules(prefix, tensors, plan);
  auto matched = std::make_shared<MatchedUnits>();
  matched->hidden = declared.hidden;
  const ExpertParameters all(tensors.begin(), tensors.end());
  for (int64_t e = 0; e < std::ssize(plan->into); ++e)
    if (const int64_t into = plan->into[static_cast<size_t>(e)]; into != e && into != ExpertPlan::kRemoved)
      matched->order[e] = match_hidden_units(all, matched->hidden, into, e);
  for (const auto& [name, tensor] : tensors) {
    SPARSIGHT_CHECK(tensor.size(0) == layer.expert_count());
    changes_[prefix + name] = {.plan = plan, .sizes = tensor.sizes().vec(), .tensor = name, .matched = matched};
  }
}

void ExpertPruner::add_modules(const std::string& prefix, const NamedTensors& tensors,
                               const std::shared_ptr<const ExpertPlan>& plan) {
  const std::vector<int64_t> kept = plan->kept();
  for (const auto& [name, tensor] : tensors) {
    const size_t dot = name.find('.');
    const auto place = std::ranges::find(kept, std::stoll(name.substr(0, dot)));
    Change change{.plan = plan, .sizes = tensor.sizes().vec(), .tensor = name, .is_module = true};
    if (place != kept.end()) change.renamed = cat(prefix, place - kept.begin(), name.substr(dot));
    changes_[prefix + name] = std::move(change);
  }
}

ExpertPruner::Place ExpertPruner::find(const std::string& name) const {
  for (size_t begin = 0; begin <= name.size();) {  // the parts between slashes
    const size_t end = std::min(name.find('/', begin), name.size());
    const auto found = changes_.find(name.substr(begin, end - begin));
    if (found != changes_.end()) return {&found->second, begin, end};
    begin = end + 1;
  }
  return {};
}

at::Tensor ExpertPruner::changed(const Change& change, const at::Tensor& tensor) {
  const ExpertPlan& plan = *change.plan;
  std::vector<at::Tensor> slices;
  for (const int64_t stays : plan.kept()) {
    std::vector<int64_t> members;
    for (int64_t e = 0; e < std::ssize(plan.into); ++e)
      if (plan.into[static_cast<size_t>(e)] == stays) members.push_back(e);
    std::vector<at::Tensor> of_members;
    for (const int64_t member : members) {
      const at::Tensor slice = tensor.select(change.axis, member);
      const bool moves = change.matched && member != stays;
      of_members.push_back(
          moves ? reorder_units(slice, change.tensor, change.matched->hidden, change.matched->order.at(member))
                : slice);
    }
    slices.push_back(weighted_mean(of_members, member_weights(plan, members, stays)));
  }
  return at::stack(slices, change.axis);
}

NamedTensors ExpertPruner::prune(const NamedTensors& tensors) const {
  const torch::NoGradGuard no_grad;
  NamedTensors pruned;
  for (const auto& [name, tensor] : tensors) {
    const Place place = find(name);
    if (!place.change) {
      pruned.emplace_back(name, tensor);
    } else if (place.change->is_module) {
      if (place.change->renamed)
        pruned.emplace_back(name.substr(0, place.begin) + *place.change->renamed + name.substr(place.end), tensor);
    } else if (tensor.sizes() == at::IntArrayRef(place.change->sizes)) {
      pruned.emplace_back(name, changed(*place.change, tensor.detach()));
    } else {
      SPARSIGHT_CHECK(tensor.numel() == 1);
      pruned.emplace_back(name, tensor);
    }
  }
  return pruned;
}

std::optional<std::string> ExpertPruner::find_foreign_shape(const NamedTensors& tensors) const {
  for (const auto& [name, tensor] : tensors) {
    const Place place = find(name);
    if (place.change && !place.change->is_module && tensor.sizes() != at::IntArrayRef(place.change->sizes) &&
        tensor.numel() != 1)
      return name;
  }
  return std::nullopt;
}

}  // namespace sparsight
