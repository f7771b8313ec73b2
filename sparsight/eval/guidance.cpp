#include "sparsight/eval/guidance.h"

#include <algorithm>

#include <torch/types.h>

#include "sparsight/core/config.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/setting_schedule.h"
#include "sparsight/moe/validate_router.h"

namespace sparsight {
namespace {

// Whether a loss that needs a target has a weight above 0.
bool has_guided_loss(const LossOptions& options) {
  for (size_t i = 0; i < options.weights.size(); ++i)
    if (routing_losses()[i].needs_target && options.weights[i] > 0) return true;
  return false;
}

// Whether [[moe.schedule]] gives such a loss a weight at some time of the training.
bool schedules_guided_loss(const Json& resolved) {
  for (const SettingSchedule& schedule : read_setting_schedules(resolved))
    for (const RoutingLoss& loss : routing_losses())
      if (loss.needs_target && schedule.setting == "losses." + loss.name && (schedule.from > 0 || schedule.to > 0))
        return true;
  return false;
}

bool guides(const MoeSpec& spec) {
  const auto router = spec.make_router({1, spec.options.experts});
  return router->needs_target() || has_guided_loss(with_router_weights(spec.losses, *router, ""));
}

// The specs with guided routers, of the blocks of [moe] and of those of [[moe.layer]].
std::vector<const MoeSpec*> guided_specs(const MoeSpec& spec, const Json& resolved) {
  std::vector<const MoeSpec*> used, guided;
  if (!spec.options.blocks.empty()) used.push_back(&spec);
  for (const MoeSpec::Override& some : spec.overrides) used.push_back(some.spec.get());
  const bool scheduled = schedules_guided_loss(resolved);
  for (const MoeSpec* some : used)
    if (scheduled || guides(*some)) guided.push_back(some);
  return guided;
}

[[noreturn]] void fail_number_of_experts(const DataInfo& data, int64_t experts) {
  const auto groups = std::ssize(data.super_classes);
  fail_usage("each expert of a guided router is for one super-class, and ", data.name, " has ",
             groups == 0 ? std::string("none") : cat(groups), " for the ", experts, " experts of [moe]; ",
             groups == 0 ? std::string() : cat("set moe.experts = ", groups, ", or "), "divide the classes into ",
             experts,
             " groups (`sparsight superclass` writes a map for superclasses.file), or set losses.superclass = ",
             "0 for an unguided router");
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

bool is_guided(const Json& resolved) { return !guided_specs(read_moe_spec(resolved), resolved).empty(); }

int64_t guided_experts(const Json& resolved) {
  const MoeSpec spec = read_moe_spec(resolved);
  const std::vector<const MoeSpec*> guided = guided_specs(spec, resolved);
  return guided.empty() ? spec.options.experts : guided.front()->options.experts;
}

at::Tensor guidance(const Json& resolved, const DataInfo& data) {
  const MoeSpec spec = read_moe_spec(resolved);
  const std::vector<const MoeSpec*> guided = guided_specs(spec, resolved);
  if (guided.empty()) return {};
  need_single_labels(data, "guidance by super-classes");
  for (const MoeSpec* some : guided)
    if (std::ssize(data.super_classes) != some->options.experts) fail_number_of_experts(data, some->options.experts);
  return super_class_membership(data);
}

std::vector<int64_t> guiding_super_classes(const Json& resolved, const DataInfo& data) {
  if (data.multi_label || data.super_class_of.empty()) return {};
  const MoeSpec spec = read_moe_spec(resolved);
  const std::vector<const MoeSpec*> guided = guided_specs(spec, resolved);
  const auto fits = [&](const MoeSpec* some) { return std::ssize(data.super_classes) == some->options.experts; };
  return guided.empty() || !std::ranges::all_of(guided, fits) ? std::vector<int64_t>() : data.super_class_of;
}

}  // namespace sparsight
