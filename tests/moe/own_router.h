// A router that is right but for given mistakes, a layer with it, and what the errors must look like.
#pragma once

#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/nn/init.h"
#include "tests/support/random_tensor.h"

namespace sparsight::testing::own_router {

inline constexpr int64_t kTokens = 6, kExperts = 3, kWidth = 4;
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr auto kInfinity = std::numeric_limits<double>::infinity();
inline const std::string kTitle = "the router own of the layer blocks.1.mlp";

// What a router may get wrong; everything else is right. `early` changes the routing before finish_routing().
struct Mistakes {
  std::function<void(Routing&)> early = [](Routing&) {}, late = [](Routing&) {};
  std::function<void(const RouterInput&)> on_input = [](const RouterInput&) {};
  std::vector<LossWeight> default_losses{{"importance", 0.1}, {"load", 0.1}, {"switch", 0.1}, {"router_z", 0.1}};
  std::vector<RouterLoss> own_losses;
  std::function<std::vector<RoutingMetric>(const Routing&)> metrics = [](const Routing&) {
    return std::vector<RoutingMetric>{{"gates", 1.0}};
  };
  std::function<RouterCost(const TokenLayout&)> cost = [](const TokenLayout& layout) {
    return token_choice_cost({}, 2, layout);
  };
  std::function<void()> on_post_step = [] {};
};

// Tokens go to experts j and j + 1 modulo 3.
class OwnRouter : public Router {
 public:
  explicit OwnRouter(Mistakes mistakes)
      : weight(register_parameter("weight", torch::full({kExperts, kWidth}, 0.1))), mistakes_(std::move(mistakes)) {}
  std::vector<LossWeight> default_losses() const override { return mistakes_.default_losses; }
  std::vector<RouterLoss> own_losses() const override { return mistakes_.own_losses; }
  std::vector<RoutingMetric> metrics(const Routing& routing) const override { return mistakes_.metrics(routing); }
  RouterCost cost(const TokenLayout& layout) const override { return mistakes_.cost(layout); }
  bool has_noise() const override { return true; }
  bool needs_post_step_update() const override { return true; }
  void post_step_update(const std::vector<Routing>&) override { mistakes_.on_post_step(); }

 protected:
  Routing choose(const RouterInput& input) override {
    mistakes_.on_input(input);
    Routing r;
    r.tokens = input.tokens.size(0);
    r.experts = kExperts;
    r.clean_logits = input.tokens.matmul(weight.t());
    r.noise_scale = torch::full({}, 0.5);
    r.noisy_logits = r.clean_logits + 0.1;
    r.scores = at::softmax(r.noisy_logits, 1);
    const at::Tensor first = torch::arange(r.tokens, torch::kLong).unsqueeze(1);
    const at::Tensor expert = torch::cat({first, first + 1}, 1).remainder(kExperts);
    choose_per_token(r, expert, r.scores.gather(1, expert));
    mistakes_.early(r);
    finish_routing(r);
    mistakes_.late(r);
    return r;
  }

 private:
  at::Tensor weight;
  Mistakes mistakes_;
};

inline MoeSpec spec_with(const std::function<std::shared_ptr<Router>()>& make, double capacity = 0) {
  MoeSpec spec = read_moe_spec({{"moe", {{"experts", kExperts}, {"hidden", 8}}},
                                {"experts", {{"name", "mlp"}}},
                                {"capacity", {{"factor", capacity}, {"priority", "max_gate"}}},
                                {"losses", {{"entropy", 0.1}, {"vmoe_load", 0.1}}},
                                {"router", {{"name", "softmax_topk"}}}});
  spec.make_router = [make](RouterShape shape) {
    auto router = make();
    router->set_registered("own", shape);
    return router;
  };
  return spec;
}

// Makes a layer, runs forward and backward, statistics and the update after the step.
inline void run(const MoeSpec& spec) {
  MoeLayer layer(spec, {"blocks.1.mlp", kWidth, 8});
  initialize(layer, 1);
  at::Tensor x = test::random_tensor({kTokens, kWidth}, 3, torch::kFloat).requires_grad_(true);
  for (int step = 0; step < 2; ++step) {
    const MoeOutput out = layer.forward({x, {2, kTokens / 2, 0, 0, 0}, ForwardMode::training()});
    at::Tensor loss = out.tokens.sum();
    for (const NamedLoss& aux : out.routing.losses) loss = loss + aux.weight * aux.value;
    loss.backward();
    if (!out.routing.soft) routing_stats(out.routing);
    post_step_update(layer, {detached(out.routing)});
  }
}

inline void run(const Mistakes& mistakes, double capacity = 0) {
  run(spec_with([&] { return std::make_shared<OwnRouter>(mistakes); }, capacity));
}

// The message of whatever is raised; "" if nothing is. Marks what is not an Error.
inline std::string error_text(const std::function<void()>& call) {
  try {
    call();
    return "";
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("NOT AN Error: ") + error.what();
  } catch (...) {
    return "NOT AN Error";
  }
}

inline void expect_error(const std::string& message, const std::string& what) {
  EXPECT_TRUE(message.starts_with(kTitle)) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message << "\nexpected: " << what;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

inline void expect_error(const Mistakes& mistakes, const std::string& what) {
  expect_error(error_text([&] { run(mistakes); }), what);
}

// Each a way to damage a tensor.
inline std::vector<std::function<at::Tensor(const at::Tensor&)>> damages() {
  std::vector<std::function<at::Tensor(const at::Tensor&)>> list{
      [](const at::Tensor&) { return at::Tensor(); },
      [](const at::Tensor& t) { return t.flatten().narrow(0, 0, 0); },
      [](const at::Tensor& t) { return t.flatten().narrow(0, 0, t.numel() - 1); },
      [](const at::Tensor& t) {
        return torch::cat({t.flatten(), t.flatten()});
      },
      [](const at::Tensor& t) { return t.unsqueeze(0); },
      [](const at::Tensor& t) { return t.flatten()[0]; },
      [](const at::Tensor& t) { return t.detach().flip(0); },
      [](const at::Tensor& t) { return t.detach().to_sparse(); },
      [](const at::Tensor& t) {
        return torch::empty(t.sizes(), t.options().device(torch::kMeta).requires_grad(false));
      },
      [](const at::Tensor& t) { return torch::zeros_like(t.flatten().narrow(0, 0, 1)).expand(t.sizes()); }};
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kInt, torch::kLong,
                          torch::kBool, torch::kComplexFloat, torch::kByte})
    list.push_back([type](const at::Tensor& t) { return t.detach().to(type); });
  for (const double value : {-1.0, 3.0, 1e18, -1e18, kNan, kInfinity, -kInfinity})
    for (const bool all : {false, true})
      list.push_back([=](const at::Tensor& t) {
        at::Tensor damaged = t.detach().clone();
        const bool integral = !damaged.is_floating_point();
        if (integral && !std::isfinite(value)) return damaged;
        (all || damaged.dim() == 0 ? damaged : damaged.flatten().narrow(0, 0, 1)).fill_(value);
        return damaged;
      });
  return list;
}

}  // namespace sparsight::testing::own_router
