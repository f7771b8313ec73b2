#include "sparsight/attacks/routed/router_losses.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include <torch/types.h>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight {
namespace {

struct Term {
  std::string name;
  double weight = -1;  // -1: that of training
};

Term parse_term(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return {text};
  Term term{text.substr(0, equals), 0};
  const char *begin = text.data() + equals + 1, *end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, term.weight);
  if (error != std::errc() || stop != end || !std::isfinite(term.weight) || term.weight < 0)
    fail_usage("router_losses has \"", printable(text), "\"; write \"", printable(term.name),
               "=weight\" with a weight of at least 0, or the name alone for the weight of training");
  return term;
}

std::vector<std::string> names_of_losses() {
  std::vector<std::string> names{"gshard"};
  for (const RoutingLoss& loss : routing_losses()) names.push_back(loss.name);
  return names;
}

const RoutingLoss& loss_named(const std::string& name) {
  const std::string registered = name == "gshard" ? "switch" : name;
  return *std::ranges::find(routing_losses(), registered, &RoutingLoss::name);
}

bool needs_router_noise(const std::string& name) {
  return std::ranges::any_of(routing_losses(),
                             [&](const RoutingLoss& loss) { return loss.name == name && loss.needs_noise; });
}

[[noreturn]] void fail_without(const std::string& name, const ModelOutput& output) {
  std::vector<std::string> known;
  for (const NamedLoss& loss : output.losses)
    if (std::ranges::find(known, loss.name) == known.end()) known.push_back(loss.name);
  const bool noise =
      std::ranges::any_of(output.routings, [](const Routing& routing) { return routing.noise_scale.defined(); });
  const std::string remedy =
      needs_router_noise(name) && !noise
          ? "; a load loss is defined only with router noise: attack in a mode with noise, with the mean of several "
            "passes (EOT), or attack the importance alone"
          : "; give it a weight in [losses] and attack in a mode with losses, or give its weight here, as in \"" +
                name + "=0.005\"";
  fail("the attack includes the router loss \"", printable(name), "\", but this pass computes ",
       known.empty() ? "none" : join(known), remedy);
}

// One loss of each router, with the weight of training or with that of the term.
std::vector<NamedLoss> term_losses(const Term& term, const ModelOutput& output) {
  std::vector<NamedLoss> losses;
  if (term.weight < 0) {
    std::ranges::copy_if(output.losses, std::back_inserter(losses),
                         [&](const NamedLoss& loss) { return loss.name == term.name; });
    return losses;
  }
  LossVariants variants;
  if (term.name == "gshard") variants.switch_counts = "first";
  const RoutingLoss& loss = loss_named(term.name);
  for (const Routing& routing : output.routings)
    if (const at::Tensor value = loss.value(routing, variants); value.defined())
      losses.push_back({term.name, value, term.weight, loss.over_routers});
  average_over_routers(losses);
  return losses;
}

// The weighted loss of all routers; undefined where the pass does not have it.
at::Tensor weighted_loss(const Term& term, const ModelOutput& output) {
  at::Tensor sum;
  for (const NamedLoss& loss : term_losses(term, output)) {
    const at::Tensor weighted = loss.weight * loss.value;
    sum = sum.defined() ? sum + weighted : weighted;
  }
  return sum;
}

}  // namespace

void RouterLossOptions::declare(OptionSet& set) {
  set.strings(
      "router_losses", &router_losses,
      "auxiliary losses of the routers that are attacked too: names in [losses], with their weights of training, "
      "or with other weights, as in [\"vmoe_importance=0.005\", \"gshard=0.01\"]; gshard is the switch loss of "
      "first choices");
  set.real("router_weight", &router_weight, {0, 1e6}, "multiplies the weights of these losses");
  set.real("task_weight", &task_weight, {0, 1e6}, "weight of the classification loss; 0: attack the routers alone");
}

void RouterLossOptions::check() const {
  for (const std::string& text : router_losses)
    if (const Term term = parse_term(text); term.weight >= 0)
      find_position(term.name, names_of_losses(), "router loss");
}

at::Tensor router_loss(const ModelOutput& output, const RouterLossOptions& options) {
  options.check();
  at::Tensor sum = at::zeros({}, output.logits.options());
  for (const std::string& text : options.router_losses) {
    const Term term = parse_term(text);
    const at::Tensor value = weighted_loss(term, output);
    if (!value.defined()) fail_without(term.name, output);
    sum = sum + options.router_weight * value.to(sum.scalar_type());
  }
  return sum;
}

}  // namespace sparsight
