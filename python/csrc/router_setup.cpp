#include "python/csrc/router_setup.h"

#include <list>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "python/csrc/check_index.h"
#include "sparsight/core/config.h"
#include "sparsight/core/json_text.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/validate_router.h"
#include "sparsight/nn/init.h"

namespace sparsight::python {
namespace {

bool is_soft(const RouterSetup& setup) { return setup.router->mixes_tokens(); }

// The part of a routing that post_step_update() uses.
Routing counted(const at::Tensor& scores, const at::Tensor& chosen_count, const at::Tensor& valid) {
  Routing routing;
  routing.tokens = scores.size(0);
  routing.experts = scores.size(1);
  routing.scores = scores;
  routing.chosen_count = chosen_count;
  routing.valid = valid;
  return routing;
}

// The setups of one thread by configuration. A new one beyond kMax replaces the one that was not used for longest.
class Setups {
 public:
  std::shared_ptr<RouterSetup> get(std::string_view config, int64_t dim) {
    const std::string key = cat(config, '#', dim);
    if (const auto found = places_.find(key); found != places_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return recent_.front().setup;
    }
    recent_.push_front({key, std::make_shared<RouterSetup>(std::string(config), dim)});
    places_[recent_.front().key] = recent_.begin();
    if (recent_.size() > kMax) {
      places_.erase(recent_.back().key);
      recent_.pop_back();
    }
    return recent_.front().setup;
  }

 private:
  static constexpr size_t kMax = 256;
  struct Entry {
    std::string key;
    std::shared_ptr<RouterSetup> setup;
  };
  std::list<Entry> recent_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> places_;  // keys are those of the entries
};

// Raises Error where what a router learns from does not have its sizes.
void check_counted(const at::Tensor& scores, const at::Tensor& count, const at::Tensor& valid, int64_t experts,
                   const char* prefix) {
  check_real(scores, cat(prefix, "scores"));
  check_real(count, cat(prefix, "count"));
  if (scores.dim() != 2 || scores.size(1) != experts)
    fail(prefix, "scores must be [N,", experts, "], got ", scores.sizes());
  if (count.dim() != 1 || count.size(0) != experts) fail(prefix, "count must be [", experts, "], got ", count.sizes());
  if (valid.defined() && (valid.dim() != 1 || valid.size(0) != scores.size(0) || valid.scalar_type() != torch::kBool))
    fail("valid must be bool [", scores.size(0), "], got ", valid.scalar_type(), " ", valid.sizes());
}

// Replaces a bound weight by an empty tensor between calls.
void release(const at::Tensor& holder) {
  const c10::InferenceMode outlives_the_call(false);
  holder.set_data(at::empty({0}, holder.options().requires_grad(false)));
}

}  // namespace

RouterSetup::RouterSetup(const std::string& config, int64_t dim) {
  const c10::InferenceMode outlives_the_call(false);
  const Json settings = parse_json_object(config, "config");
  experts = settings.at("experts").get<int64_t>();
  prefix = settings.value("prefix", int64_t{0});
  mode = settings.value("training", false) ? ForwardMode::training() : ForwardMode::evaluation();
  mode.losses = settings.contains("losses");
  if (experts < 1) fail_usage("experts must be at least 1, got ", experts);
  if (dim < 1) fail_usage("dim must be at least 1, got ", dim);
  if (prefix < 0) fail_usage("prefix must be at least 0, got ", prefix);
  name = settings.at("router").at("name").get<std::string>();
  if (const auto& describe_shared = routers().describe_shared())
    describe_shared([&](const OptionSet& shared) {
      for (const Option& option : shared.options())
        if (settings.at("router").contains(option.name))
          fail_usage("the setting \"", option.name, "\" applies to whole models; omit it for a standalone router");
    });
  router = make_router(settings, RouterShape{dim, experts});
  samples = router->random_purposes();
  if (settings.contains("capacity")) capacity = read_section<CapacityOptions>(settings, "capacity");
  if (mode.losses) losses = read_section<LossOptions>(settings, "losses");
  losses = with_router_weights(losses, *router, "");
  for (size_t i = 0; i < losses.weights.size(); ++i)
    if (losses.weights[i] > 0) weighed.push_back({routing_losses()[i].name, losses.weights[i]});
  for (const RouterLoss& own : router->own_losses()) weighed.push_back({own.name, own.weight});
  for (const auto& p : router->named_parameters()) {
    weight_names.push_back(p.key());
    weights.push_back(p.value());
  }
  parameters = weights.size();
  for (const auto& b : router->named_buffers()) {
    weight_names.push_back(b.key());
    weights.push_back(b.value());
  }
  for (const at::Tensor& weight : weights) shapes.push_back(weight.sizes().vec());
  if (!is_soft(*this)) {
    const torch::NoGradGuard no_grad;
    // 0 images, each of the minimum size: only the prefix.
    const Routing nothing = router->route({torch::empty({0, dim}), {0, prefix, prefix, 0, 0}, "moe", mode});
    per_token = nothing.per_token;
    has_logits = nothing.clean_logits.defined();
    has_scores = nothing.scores.defined();
    groups = nothing.groups ? nothing.groups->experts : 0;
    for (const RoutingMetric& metric : nothing.metrics) metrics.push_back(metric.name);
  }
}

std::shared_ptr<RouterSetup> router_setup(std::string_view config, int64_t dim) {
  thread_local Setups setups;
  return setups.get(config, dim);
}

BoundWeights::BoundWeights(RouterSetup& setup, at::TensorList weights) : setup_(setup) {
  if (weights.size() != setup.weights.size())
    fail("the router has ", setup.weights.size(), " weights (", join(setup.weight_names), "), got ", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].sizes() != setup.shapes[i])
      fail("the router's ", setup.weight_names[i], " has shape ", at::IntArrayRef(setup.shapes[i]), ", got ",
           weights[i].sizes());
    const bool real = setup.weights[i].is_floating_point();
    if (real ? !weights[i].is_floating_point() : weights[i].scalar_type() != torch::kLong)
      fail("the router's ", setup.weight_names[i], " must be ", real ? "floating-point numbers" : "int64", ", got ",
           weights[i].scalar_type());
  }
  for (size_t i = 0; i < weights.size(); ++i) setup.weights[i].set_data(weights[i].detach());
}

BoundWeights::~BoundWeights() {
  for (const at::Tensor& holder : setup_.weights) release(holder);
}

std::string describe_router(const std::string& config, int64_t dim) {
  const RouterSetup setup(config, dim);
  Json weights = Json::array(), losses = Json::object(), averaged = Json::array();
  for (size_t i = 0; i < setup.weights.size(); ++i)
    weights.push_back({{"name", setup.weight_names[i]},
                       {"shape", setup.weights[i].sizes().vec()},
                       {"parameter", i < setup.parameters},
                       {"integer", setup.weights[i].scalar_type() == torch::kLong}});
  for (const LossWeight& loss : setup.weighed) losses[loss.name] = loss.weight;
  for (const RoutingLoss& loss : routing_losses())
    if (loss.over_routers == OverRouters::mean && losses.contains(loss.name)) averaged.push_back(loss.name);
  return Json{
      {"weights", weights},         {"soft", is_soft(setup)},       {"learns", setup.router->needs_post_step_update()},
      {"losses", losses},           {"per_token", setup.per_token}, {"logits", setup.has_logits},
      {"scores", setup.has_scores}, {"groups", setup.groups},       {"samples", setup.samples},
      {"metrics", setup.metrics},   {"averaged", averaged}}
      .dump();
}

std::string list_routers() {
  Json all = Json::object();
  for (const auto& entry : routers().entries()) {
    Json options = Json::array();
    entry.describe([&](OptionSet& set) {
      for (const Option& option : set.options())
        options.push_back({{"name", option.name},
                           {"type", option.type},
                           {"allowed", option.allowed},
                           {"default", option.get()},
                           {"help", option.help}});
    });
    all[entry.name] = {{"summary", entry.summary}, {"options", options}};
  }
  return all.dump();
}

std::string list_losses() {
  Json all = Json::object();
  for (const RoutingLoss& loss : routing_losses()) all[loss.name] = loss.help;
  return all.dump();
}

std::vector<at::Tensor> initial_weights(const std::string& config, int64_t dim, int64_t seed, const std::string& path) {
  const RouterSetup setup(config, dim);
  if (auto* initialized = dynamic_cast<Initialized*>(setup.router.get()))
    initialized->initialize({static_cast<uint64_t>(seed), path});
  std::vector<at::Tensor> weights;
  for (const at::Tensor& weight : setup.weights) weights.push_back(weight.detach().clone());
  return weights;
}

std::vector<at::Tensor> weights_after_update(const std::string& config, int64_t dim, at::TensorList weights,
                                             const PostStepInput& from) {
  const size_t count = from.scores.size();
  if (from.chosen_count.size() != count || (!from.valid.empty() && from.valid.size() != count))
    fail("each routing needs scores and chosen_count, got ", count, " and ", from.chosen_count.size());
  if (from.group_count.size() != from.group_scores.size() ||
      (!from.group_scores.empty() && from.group_scores.size() != count))
    fail("each two-level routing needs group_scores and group_count, got ", from.group_scores.size(), " and ",
         from.group_count.size(), " for ", count, " routings");
  const std::shared_ptr<RouterSetup> cached = router_setup(config, dim);
  RouterSetup& setup = *cached;
  std::vector<at::Tensor> moved;
  for (const at::Tensor& weight : weights) moved.push_back(weight.detach().clone());
  std::vector<Routing> routings;
  for (size_t i = 0; i < count; ++i) {
    const at::Tensor valid = from.valid.empty() ? at::Tensor() : from.valid[i];
    check_counted(from.scores[i], from.chosen_count[i], valid, setup.experts, "");
    if (!from.group_scores.empty())
      check_counted(from.group_scores[i], from.group_count[i], valid, setup.groups, "group ");
    routings.push_back(counted(from.scores[i], from.chosen_count[i], valid));
    if (!from.group_scores.empty())
      routings[i].groups = std::make_shared<const Routing>(counted(from.group_scores[i], from.group_count[i], valid));
  }
  const torch::NoGradGuard no_grad;
  const BoundWeights bound(setup, moved);
  setup.router->post_step_update(routings);  // in place: the router's weights alias `moved`
  return moved;
}

}  // namespace sparsight::python
