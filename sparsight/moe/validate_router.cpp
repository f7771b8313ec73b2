#include "sparsight/moe/validate_router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/validate_routing.h"

namespace sparsight {
namespace {

// What is wrong with the output of a function other than choose().
class InvalidOutput : public Error {
 public:
  using Error::Error;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

RoutingRequest request_for(const Router& router, const RouterInput& input) {
  return {input.tokens, router.registered_shape().experts, [&router] { return router.parameters(); }};
}

// A name that is in the log once.
void check_name(const char* what, const std::string& name, std::set<std::string>& names) {
  if (name.empty()) throw InvalidOutput(cat("a ", what, " has no name"));
  if (!names.insert(name).second)
    throw InvalidOutput(
        cat("the ", what, " ", name, " has the name of another one or of a registered loss; rename it"));
}

void check_weight(const std::string& loss, double weight) {
  if (!std::isfinite(weight) || weight < 0)
    throw InvalidOutput(cat("the weight of the loss ", loss, " is ", weight, ", must be 0 or above"));
}

void check_loss(const NamedLoss& loss, const Routing& routing, const RoutingRequest& request) {
  const at::Tensor& value = loss.value;
  if (value.dim() != 0 || !at::isFloatingType(value.scalar_type()))
    throw InvalidOutput(cat("the loss ", loss.name, " is ", value.scalar_type(), " ", value.sizes(),
                            ", must be a floating-point scalar []; does it lack a mean() or sum()?"));
  if (value.is_cpu() && !std::isfinite(value.item<double>()) && has_finite_inputs(routing, request))
    throw InvalidOutput(
        cat("the loss ", loss.name, " is ", value.item<double>(), ", although tokens, weights and logits are finite"));
}

void check_number(const char* name, double value, double maximum = std::numeric_limits<double>::max()) {
  if (!(value >= 0 && value <= maximum))  // NaN is neither
    throw InvalidOutput(
        cat("cost() has ", name, " = ", value, ", must be ",
            maximum < std::numeric_limits<double>::max() ? cat("from 0 to ", maximum) : "finite and 0 or above"));
}

bool needs_noise(const std::string& loss) {
  return std::ranges::any_of(routing_losses(),
                             [&](const RoutingLoss& known) { return known.name == loss && known.needs_noise; });
}

}  // namespace

std::string router_title(const Router& router, const std::string& layer) {
  const std::string& name = router.registered_name();
  return cat("the router ", name.empty() ? router.name() : name, layer.empty() ? "" : " of the layer ", layer);
}

void call_router(const Router& router, const std::string& layer, const char* function,
                 const std::function<void()>& call) {
  const auto failed = [&](const std::string& what) {
    fail(router_title(router, layer), ": ", function, "() failed: ", first_line(what));
  };
  try {
    call();
  } catch (const InvalidRouting& error) {
    fail(router_title(router, layer), " returned an invalid routing: ", error.what());
  } catch (const InvalidOutput& error) {
    fail(router_title(router, layer), ": ", error.what());
  } catch (const Error&) {  // a message for the user
    throw;
  } catch (const c10::Error& error) {
    failed(error.what_without_backtrace());
  } catch (const std::exception& error) {
    failed(error.what());
  } catch (...) {
    failed("it threw something that is not a std::exception");
  }
}

RouterCost checked_cost(const Router& router, const std::string& layer, const TokenLayout& layout) {
  RouterCost cost;
  call_router(router, layer, "cost", [&] {
    cost = router.cost(layout);
    const auto experts = static_cast<double>(router.registered_shape().experts);
    const double most = experts > 0 ? experts : std::numeric_limits<double>::max();
    check_number("parameters", static_cast<double>(cost.cost.parameters));
    check_number("multiply_adds", static_cast<double>(cost.cost.multiply_adds));
    check_number("elementwise", static_cast<double>(cost.cost.elementwise));
    check_number("weight_bytes", static_cast<double>(cost.cost.weight_bytes));
    check_number("rows", cost.rows);
    check_number("active", cost.active, most);
    check_number("touched", static_cast<double>(cost.touched.value_or(0)), most);
    check_number("per_token", static_cast<double>(cost.per_token), most);
  });
  return cost;
}

namespace {

// A router that mixes tokens has no losses at all.
void refuse_load_losses(const LossOptions& options, const Router& router, const std::string& layer) {
  for (size_t i = 0; i < options.weights.size() && !router.mixes_tokens(); ++i)
    if (const std::string& name = routing_losses()[i].name; options.weights[i] > 0 && needs_noise(name))
      fail_usage("[losses] ", name, " = ", options.weights[i], " needs router noise, but ", router_title(router, layer),
                 " has none; set losses.", name, " = 0, or turn on the noise of a router that has it (router.noise)");
}

}  // namespace

LossOptions with_router_weights(const LossOptions& options, const Router& router, const std::string& layer) {
  std::vector<LossWeight> paper;
  call_router(router, layer, "default_losses", [&] {
    paper = router.default_losses();
    for (const LossWeight& loss : paper) {
      std::string known;
      for (const RoutingLoss& some : routing_losses()) known += (known.empty() ? "" : ", ") + some.name;
      const auto is_it = [&](const RoutingLoss& some) { return some.name == loss.name; };
      if (std::none_of(routing_losses().begin(), routing_losses().end(), is_it))
        throw InvalidOutput(cat("default_losses() names the loss \"", loss.name, "\" (known: ", known, ")"));
      check_weight(loss.name, loss.weight);
    }
  });
  // The default weights of a router without noise have no load loss.
  if (!router.has_noise()) {
    std::erase_if(paper, [](const LossWeight& loss) { return needs_noise(loss.name); });
    refuse_load_losses(options, router, layer);
  }
  return with_default_weights(options, paper);
}

std::vector<NamedLoss> checked_losses(const Router& router, const RouterInput& input, const Routing& routing,
                                      const LossOptions& options) {
  std::vector<NamedLoss> losses;
  call_router(router, input.layer, "own_losses", [&] {
    const std::vector<RouterLoss> own = router.own_losses();
    std::set<std::string> names;
    for (const RoutingLoss& loss : routing_losses()) names.insert(loss.name);
    for (const RouterLoss& loss : own) {
      check_name("loss", loss.name, names);
      check_weight(loss.name, loss.weight);
      if (!loss.value) throw InvalidOutput(cat("the loss ", loss.name, " has no function"));
    }
    losses = compute_losses(routing, options, own);
    // What is not finite of the other losses is no mistake of the router.
    for (const NamedLoss& loss : losses)
      if (std::ranges::any_of(own, [&](const RouterLoss& known) { return known.name == loss.name; }))
        check_loss(loss, routing, request_for(router, input));
  });
  return losses;
}

std::vector<RoutingMetric> checked_metrics(const Router& router, const RouterInput& input, const Routing& routing) {
  std::vector<RoutingMetric> metrics;
  call_router(router, input.layer, "metrics", [&] {
    metrics = router.metrics(routing);
    std::set<std::string> names;
    for (const RoutingLoss& loss : routing_losses()) names.insert(loss.name);
    for (const RoutingMetric& metric : metrics) {
      check_name("metric", metric.name, names);
      if (!std::isfinite(metric.value) && has_finite_inputs(routing, request_for(router, input)))
        throw InvalidOutput(cat("the metric ", metric.name, " is ", metric.value,
                                ", although tokens, weights and logits are finite",
                                routing.tokens == 0 ? "; without tokens return 0" : ""));
    }
  });
  return metrics;
}

}  // namespace sparsight
