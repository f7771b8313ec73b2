#include "sparsight/eval/guidance.h"

#include <algorithm>

#include <torch/types.h>

#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/validate_router.h"

namespace sparsight {
namespace {

// Why routers are guided: not at all, because their paper does it, or because the configuration asks for it.
enum class GuidanceMode { none, of_paper, of_user };

// Whether a loss that needs a target has a weight above 0.
bool has_guided_loss(const LossOptions& options) {
  for (size_t i = 0; i < options.weights.size(); ++i)
    if (routing_losses()[i].needs_target && options.weights[i] > 0) return true;
  return false;
}

GuidanceMode guidance_mode(const MoeSpec& spec) {
  const auto router = spec.make_router({1, spec.options.experts});
  if (router->needs_target() || has_guided_loss(spec.losses)) return GuidanceMode::of_user;
  return has_guided_loss(with_router_weights(spec.losses, *router, "")) ? GuidanceMode::of_paper : GuidanceMode::none;
}

// For the blocks of [moe] and for those of [[moe.layer]].
std::vector<const MoeSpec*> specs_in_use(const MoeSpec& spec) {
  std::vector<const MoeSpec*> specs;
  if (!spec.options.blocks.empty()) specs.push_back(&spec);
  for (const MoeSpec::Override& some : spec.overrides) specs.push_back(some.spec.get());
  return specs;
}

// "losses.superclass or losses.separation"
std::string guided_losses() {
  std::vector<std::string> names;
  for (const RoutingLoss& loss : routing_losses())
    if (loss.needs_target) names.push_back("losses." + loss.name);
  return join(names, " or ");
}

}  // namespace

at::Tensor super_class_membership(const DataInfo& data) {
  if (data.super_class_of.empty()) return {};
  const at::Tensor of_class = torch::tensor(data.super_class_of, torch::kLong);
  return torch::zeros({of_class.size(0), static_cast<int64_t>(data.super_classes.size())})
      .scatter_(1, of_class.unsqueeze(1), 1);
}

at::Tensor super_class_targets(const Batch& batch, const at::Tensor& membership) {
  if (!membership.defined()) return {};
  if (batch.targets.defined()) return batch.targets.matmul(membership);
  return membership.index_select(0, batch.labels);
}

at::Tensor guidance(const Json& resolved, const DataInfo& data) {
  const at::Tensor membership = super_class_membership(data);
  const MoeSpec spec = read_moe_spec(resolved);
  GuidanceMode wanted = GuidanceMode::none;
  int64_t experts = spec.options.experts;
  bool fits = membership.defined() && membership.size(1) == experts;
  for (const MoeSpec* used : specs_in_use(spec)) {
    const GuidanceMode mode = guidance_mode(*used);
    if (mode == GuidanceMode::none) continue;
    const bool same = membership.defined() && membership.size(1) == used->options.experts;
    fits = same && (fits || wanted == GuidanceMode::none);
    wanted = std::max(wanted, mode);
    if (!same) experts = used->options.experts;
  }
  if (fits) {
    need_single_labels(data, "guidance by super-classes");
    return membership;
  }
  const std::string why =
      cat("dataset ", data.name, " has ", data.super_classes.size(), " super-classes and [moe] experts is ", experts,
          "; equal numbers, one expert for each super-class, let ", guided_losses(), " train it");
  if (wanted == GuidanceMode::of_user) fail_usage("the router cannot be guided: ", why);
  if (wanted == GuidanceMode::of_paper) log_warning("the router is not guided by super-classes: ", why);
  return {};
}

}  // namespace sparsight
