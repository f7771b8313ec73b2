// MoE layers of a given router and kind of expert, for the tests that run over everything registered.
#pragma once

#include <memory>
#include <string>

#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/random_tensor.h"

namespace sparsight::test {

struct LayerForm {
  std::string router = "softmax_topk";
  std::string kind = "mlp";
  int64_t experts = 4, width = 8, hidden = 12;
  Json router_settings = Json::object();  // those that the router does not have are left out
  Json kind_settings = Json::object();
};

inline std::shared_ptr<MoeLayer> make_layer(const LayerForm& form, uint64_t seed = 1) {
  Json router = {{"name", form.router}};
  routers().get(form.router).describe([&](OptionSet& set) {
    for (const auto& [key, value] : form.router_settings.items())
      if (set.find(key)) router[key] = value;
  });
  Json kind = form.kind_settings;
  kind["name"] = form.kind;
  const MoeSpec spec = read_moe_spec({{"moe", {{"experts", form.experts}, {"hidden", form.hidden}}},
                                      {"experts", kind},
                                      {"losses", Json::object()},
                                      {"router", router}});
  auto layer = std::make_shared<MoeLayer>(spec, LayerContext{"moe", form.width, form.hidden});
  initialize(*layer, seed);
  const torch::NoGradGuard no_grad;
  for (auto& p : layer->named_parameters())  // some start at 0
    p.value().add_(random_tensor(p.value().sizes(), 77 + seed, torch::kFloat) * 0.2);
  return layer;
}

// The results of a forward and a backward pass: the output, each loss and each gradient.
struct Pass {
  MoeOutput out;
  at::Tensor tokens_grad;
  std::vector<std::pair<std::string, at::Tensor>> all;
};

// A batch norm with batch statistics depends on all rows of its expert; with running averages, rows are independent,
// and its experts must pass the same tests as all others.
constexpr ForwardMode frozen_norms(ForwardMode mode) {
  mode.batch_statistics = false;
  return mode;
}

// context.target and the upstream gradient of the output are made here.
inline Pass run_layer(MoeLayer& layer, const at::Tensor& tokens, int64_t images, RoutingContext pool = {},
                      const ForwardMode& mode = ForwardMode::training()) {
  const int64_t per_image = images == 0 ? 10 : tokens.size(0) / images;
  const at::Tensor x = tokens.detach().requires_grad_(true);
  if (pool.target.defined()) pool.target = pool.target.to(torch::kFloat);
  layer.zero_grad();
  Pass pass;
  pass.out = layer.forward({x, {images, per_image, 1, 3, 3}, frozen_norms(mode), {1, 2}, pool});
  at::Tensor total = (pass.out.tokens * random_tensor(pass.out.tokens.sizes(), 4, tokens.scalar_type())).sum();
  pass.all.emplace_back("output", pass.out.tokens.detach());
  for (const NamedLoss& loss : pass.out.routing.losses) {
    total = total + loss.weight * loss.value;
    pass.all.emplace_back("loss " + loss.name, loss.value.detach());
  }
  total.backward();
  pass.tokens_grad = x.grad().defined() ? x.grad() : torch::zeros_like(x);
  pass.all.emplace_back("tokens", pass.tokens_grad);
  for (const auto& p : layer.named_parameters())
    if (p.value().grad().defined()) pass.all.emplace_back(p.key(), p.value().grad().clone());
  return pass;
}

}  // namespace sparsight::test
