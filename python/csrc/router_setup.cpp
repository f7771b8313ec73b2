#include "python/csrc/router_setup.h"

#include <unordered_map>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"

namespace sparsight::python {
namespace {

bool is_soft(const RouterSetup& setup) { return dynamic_cast<SoftRouter*>(setup.router.get()) != nullptr; }

// Placeholders of the holders while no call is on.
void release(const at::Tensor& holder) { holder.set_data(at::empty({0}, holder.options().requires_grad(false))); }

}  // namespace

RouterSetup::RouterSetup(const std::string& config, int64_t dim) {
  const Json settings = Json::parse(config);
  experts = settings.at("experts").get<int64_t>();
  prefix = settings.value("prefix", int64_t{0});
  training = settings.value("training", false);
  wants_losses = settings.contains("losses");
  if (experts < 1) fail_usage("experts must be at least 1, got ", experts);
  if (dim < 1) fail_usage("dim must be at least 1, got ", dim);
  router = make_component(routers(), settings, "router", RouterShape{dim, experts});
  if (settings.contains("capacity")) capacity = read_section<CapacityOptions>(settings, "capacity");
  if (wants_losses) losses = read_section<LossOptions>(settings, "losses");
  losses = with_paper_weights(losses, router->paper_losses());
  for (size_t i = 0; i < losses.weights.size(); ++i)
    if (losses.weights[i] > 0) loss_names.push_back(routing_losses()[i].name);
  router->train(training);
  for (const auto& p : router->named_parameters()) {
    weight_names.push_back(p.key());
    weights.push_back(p.value());
  }
  parameters = weights.size();
  for (const auto& b : router->named_buffers()) {
    weight_names.push_back(b.key());
    weights.push_back(b.value());
  }
  if (!is_soft(*this)) {
    const torch::NoGradGuard no_grad;
    const Routing nothing = router->route({torch::empty({0, dim}), {0, 0, prefix, 0, 0}, "moe", {}, {}, 0});
    per_token = nothing.per_token;
    has_logits = nothing.clean_logits.defined();
    has_scores = nothing.scores.defined();
  }
}

RouterSetup& router_setup(std::string_view config, int64_t dim) {
  thread_local std::unordered_map<std::string, std::unique_ptr<RouterSetup>> setups;
  std::string key(config);
  key += '#';
  key += std::to_string(dim);
  std::unique_ptr<RouterSetup>& setup = setups[key];
  if (!setup) setup = std::make_unique<RouterSetup>(std::string(config), dim);
  return *setup;
}

BoundWeights::BoundWeights(RouterSetup& setup, at::TensorList weights) : setup_(setup) {
  if (weights.size() != setup.weights.size())
    fail("the router has ", setup.weights.size(), " weights (", join(setup.weight_names), "), got ", weights.size());
  for (size_t i = 0; i < weights.size(); ++i) setup.weights[i].set_data(weights[i].detach());
}

BoundWeights::~BoundWeights() {
  for (const at::Tensor& holder : setup_.weights) release(holder);
}

std::string describe_router(const std::string& config, int64_t dim) {
  const RouterSetup setup(config, dim);
  Json weights = Json::array(), losses = Json::object();
  for (size_t i = 0; i < setup.weights.size(); ++i)
    weights.push_back({{"name", setup.weight_names[i]},
                       {"shape", setup.weights[i].sizes().vec()},
                       {"parameter", i < setup.parameters},
                       {"integer", setup.weights[i].scalar_type() == torch::kLong}});
  for (size_t i = 0; i < setup.losses.weights.size(); ++i)
    if (setup.losses.weights[i] > 0) losses[routing_losses()[i].name] = setup.losses.weights[i];
  return Json{
      {"weights", weights},        {"soft", is_soft(setup)},       {"learns", setup.router->learns_from_routings()},
      {"losses", losses},          {"per_token", setup.per_token}, {"logits", setup.has_logits},
      {"scores", setup.has_scores}}
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

std::vector<at::Tensor> initial_weights(const std::string& config, int64_t dim, int64_t seed, const std::string& path) {
  const RouterSetup setup(config, dim);
  if (auto* initialized = dynamic_cast<Initialized*>(setup.router.get()))
    initialized->initialize({static_cast<uint64_t>(seed), path});
  std::vector<at::Tensor> weights;
  for (const at::Tensor& weight : setup.weights) weights.push_back(weight.detach().clone());
  return weights;
}

std::vector<at::Tensor> weights_after_step(const std::string& config, at::TensorList weights, at::TensorList scores,
                                           at::TensorList chosen_count, at::TensorList valid, int64_t dim) {
  if (scores.size() != chosen_count.size() || (!valid.empty() && valid.size() != scores.size()))
    fail("each routing needs its scores and its chosen_count, got ", scores.size(), " and ", chosen_count.size());
  RouterSetup& setup = router_setup(config, dim);
  std::vector<at::Tensor> moved;
  for (const at::Tensor& weight : weights) moved.push_back(weight.detach().clone());
  std::vector<Routing> routings(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    routings[i].experts = setup.experts;
    routings[i].tokens = scores[i].size(0);
    routings[i].scores = scores[i];
    routings[i].chosen_count = chosen_count[i];
    if (!valid.empty()) routings[i].valid = valid[i];
  }
  const torch::NoGradGuard no_grad;
  const BoundWeights bound(setup, moved);
  setup.router->after_step(routings);  // in place: `moved` shares the memory
  return moved;
}

}  // namespace sparsight::python
