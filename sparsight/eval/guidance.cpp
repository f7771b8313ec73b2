#include "sparsight/eval/guidance.h"

#include <algorithm>

#include <torch/types.h>

#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/moe/moe_spec.h"

namespace sparsight {
namespace {

// Whether routers are guided: not at all, as their paper has it, or because the configuration says so.
enum class Wish { none, of_paper, of_user };

Wish wish(const Json& resolved) {
  const MoeSpec spec = read_moe_spec(resolved);
  if (spec.options.blocks.empty()) return Wish::none;
  if (resolved.at("router").value("teacher_forced", false)) return Wish::of_user;
  const auto weight = [](LossOptions options) {  // of the losses that need a target
    OptionSet set;
    options.declare(set);
    const auto of = [&](const char* name) { return std::max(0.0, set.find(name)->get().get<double>()); };
    return of("superclass") + of("separation");
  };
  if (weight(spec.losses) > 0) return Wish::of_user;
  const auto router = spec.make_router({1, spec.options.experts});
  return weight(with_paper_weights(spec.losses, router->paper_losses())) > 0 ? Wish::of_paper : Wish::none;
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
  const int64_t experts = read_section<MoeOptions>(resolved, "moe").experts;
  if (membership.defined() && membership.size(1) == experts) return membership;
  const Wish wanted = wish(resolved);
  const std::string why =
      cat("data set ", data.name, " has ", data.super_classes.size(), " super-classes and [moe] experts is ", experts,
          "; equal numbers, one expert for each super-class, let losses.superclass or losses.separation train it");
  if (wanted == Wish::of_user) fail_usage("the router cannot be guided: ", why);
  if (wanted == Wish::of_paper) log_warning("the router is not guided by super-classes: ", why);
  return {};
}

}  // namespace sparsight
