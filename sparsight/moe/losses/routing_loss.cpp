#include "sparsight/moe/losses/routing_loss.h"

#include <map>

#include "sparsight/core/error.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight {

void LossVariants::declare(OptionSet& set) {
  set.flag("threshold_gradient", &threshold_gradient, "load: propagate the gradient through the threshold too");
  set.flag("threshold_score_gradient", &threshold_score_gradient,
           "threshold: propagate the gradient to the scores; off: the router's weights are not trained by it");
  set.flag("unbiased_variance", &unbiased_variance, "squared CV: divide by experts - 1 instead of experts");
  set.choice("vmoe_load_of", &vmoe_load_of, {"logits", "scores"},
             "vmoe_load: what is compared with the threshold; scores: as GMoE's library does");
  set.choice("switch_counts", &switch_counts, {"auto", "first", "mean", "sum"},
             "switch: an expert's token fraction counts first choices, all choices divided by k, or all choices; auto: "
             "first choices for gshard_top2 and for softmax_topk with two experts, all for top_p, as in their papers, "
             "else mean");
  set.choice("switch_form", &switch_form, {"switch", "gshard"},
             "switch: experts * sum (Switch, 1 when uniform) or sum / experts (as printed in GShard)");
}

LossOptions::LossOptions() : weights(routing_losses().size(), -1) {}

void LossOptions::declare(OptionSet& set) {
  for (size_t i = 0; i < weights.size(); ++i)
    set.real(routing_losses()[i].name, &weights[i], {-1, 1e6},
             "weight of " + routing_losses()[i].help + "; -1: the router's default")
        .live = true;
  variants.declare(set);
}

LossOptions with_default_weights(LossOptions options, const std::vector<LossWeight>& paper) {
  for (size_t i = 0; i < options.weights.size(); ++i) {
    double& weight = options.weights[i];
    const std::string& name = routing_losses()[i].name;
    if (weight < 0 && weight != -1)
      fail_usage("[losses] ", name, " = ", weight,
                 "; set it to 0 or above, or to -1 for the weight of the router's paper");
    if (weight != -1) continue;
    weight = 0;
    for (const LossWeight& loss : paper)
      if (loss.name == name) weight = loss.weight;
  }
  if (options.variants.switch_counts == "auto")
    for (const LossWeight& loss : paper)
      if (!loss.switch_counts.empty()) options.variants.switch_counts = loss.switch_counts;
  return options;
}

std::vector<NamedLoss> compute_losses(const Routing& routing, const LossOptions& options,
                                      const std::vector<RouterLoss>& own) {
  std::vector<NamedLoss> losses;
  if (routing.soft) return losses;
  for (size_t i = 0; i < options.weights.size(); ++i) {
    if (options.weights[i] <= 0) continue;
    const RoutingLoss& loss = routing_losses()[i];
    if (const at::Tensor value = loss.value(routing, options.variants); value.defined())
      losses.push_back({loss.name, value, options.weights[i], loss.over_routers});
  }
  for (const RouterLoss& loss : own) {
    if (loss.weight <= 0) continue;
    if (const at::Tensor value = loss.value(routing); value.defined())
      losses.push_back({loss.name, value, loss.weight});
  }
  return losses;
}

void average_over_routers(std::vector<NamedLoss>& losses) {
  std::map<std::string, int64_t> routers;
  for (const NamedLoss& loss : losses) ++routers[loss.name];
  for (NamedLoss& loss : losses)
    if (const int64_t count = routers[loss.name]; loss.over_routers == OverRouters::mean && count > 1)
      loss.value = loss.value / count;
}

}  // namespace sparsight
