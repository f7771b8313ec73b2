// Whatever a router of one's own does wrong, a layer with it either works or raises an Error of one line that names the
// router and the layer; nothing else gets through. What is wrong with a routing in detail: validate_routing_test.cpp.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>

#include <gtest/gtest.h>

#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/moe/validate_router.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::router_mistakes_test {
namespace {

constexpr int64_t kTokens = 6, kExperts = 3, kWidth = 4;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kInfinity = std::numeric_limits<double>::infinity();
const std::string kTitle = "the router own of the layer blocks.1.mlp";

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
  std::function<void()> after_step = [] {};
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
  bool needs_post_step_update() const override { return true; }
  void post_step_update(const std::vector<Routing>&) override { mistakes_.after_step(); }

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

MoeSpec spec_with(const std::function<std::shared_ptr<Router>()>& make, double capacity = 0) {
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
void run(const MoeSpec& spec) {
  MoeLayer layer(spec, {"blocks.1.mlp", kWidth, 8});
  initialize(layer, 1);
  at::Tensor x = test::random_tensor({kTokens, kWidth}, 3, torch::kFloat).requires_grad_(true);
  for (int step = 0; step < 2; ++step) {
    const MoeOutput out = layer.forward({x, {2, kTokens / 2, 0, 0, 0}, ForwardMode::training()});
    at::Tensor loss = out.tokens.sum();
    for (const NamedLoss& aux : out.routing.losses) loss = loss + aux.weight * aux.value;
    loss.backward();
    routing_stats(out.routing);
    post_step_update(layer, {detached(out.routing)});
  }
}

void run(const Mistakes& mistakes, double capacity = 0) {
  run(spec_with([&] { return std::make_shared<OwnRouter>(mistakes); }, capacity));
}

// The message of whatever is raised; "" if nothing is. Marks what is not an Error.
std::string message_of(const std::function<void()>& call) {
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

void expect_error(const std::string& message, const std::string& what) {
  EXPECT_TRUE(message.starts_with(kTitle)) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message << "\nexpected: " << what;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

void expect_error(const Mistakes& mistakes, const std::string& what) {
  expect_error(message_of([&] { run(mistakes); }), what);
}

// Each a way to damage a tensor.
std::vector<std::function<at::Tensor(const at::Tensor&)>> damages() {
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

}  // namespace

TEST(RouterMistakes, ARightRouterRuns) {
  EXPECT_EQ(message_of([] { run(Mistakes{}); }), "");
  EXPECT_EQ(message_of([] { run(Mistakes{}, 1.0); }), "");
}

// Every field of a routing, damaged in every way, before or after finish_routing(), with and without capacity: right
// or an Error. The address sanitizer sees what is read out of bounds.
TEST(RouterMistakes, AnyDamagedFieldIsRightOrAnError) {
  const std::vector<std::pair<std::string, at::Tensor Routing::*>> fields{
      {"token", &Routing::token},
      {"expert", &Routing::expert},
      {"rank", &Routing::rank},
      {"gate", &Routing::gate},
      {"kept", &Routing::kept},
      {"chosen_count", &Routing::chosen_count},
      {"order", &Routing::order},
      {"offsets", &Routing::offsets},
      {"clean_logits", &Routing::clean_logits},
      {"noisy_logits", &Routing::noisy_logits},
      {"scores", &Routing::scores},
      {"noise_scale", &Routing::noise_scale},
      {"smooth_load", &Routing::smooth_load},
      {"threshold", &Routing::threshold},
      {"group", &Routing::group},
      {"valid", &Routing::valid},
      {"priority", &Routing::priority},
      {"target", &Routing::target},
      {"capacity", &Routing::capacity},
      {"position", &Routing::position},
  };
  const auto ways = damages();
  int refused = 0, tried = 0;
  for (const auto& [name, field] : fields)
    for (size_t way = 0; way < ways.size(); ++way)
      for (const bool early : {true, false})
        for (const double capacity : {0.0, 0.5}) {
          const auto damage = [&, field = field](Routing& r) {
            const at::Tensor before = r.*field;
            r.*field = ways[way](before.defined() ? before : torch::ones({kExperts}));
          };
          Mistakes mistakes;
          (early ? mistakes.early : mistakes.late) = damage;
          const std::string message = message_of([&] { run(mistakes, capacity); });
          ++tried;
          if (message.empty()) continue;
          ++refused;
          EXPECT_TRUE(message.starts_with(kTitle) && message.find('\n') == std::string::npos)
              << name << " damaged in way " << way << (early ? " early" : " late") << ": " << message;
        }
  EXPECT_GT(refused, tried / 3);
}

TEST(RouterMistakes, AnyDamagedNumberIsRightOrAnError) {
  for (int64_t Routing::*field : {&Routing::tokens, &Routing::experts, &Routing::per_token, &Routing::group_count})
    for (const int64_t value : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1} << 40, int64_t{1} << 62})
      for (const bool early : {true, false}) {
        Mistakes mistakes;
        (early ? mistakes.early : mistakes.late) = [=](Routing& r) { r.*field = value; };
        const std::string message = message_of([&] { run(mistakes, 0.5); });
        EXPECT_TRUE(message.empty() || (message.starts_with(kTitle) && message.find('\n') == std::string::npos))
            << message;
      }
}

// Capacity decides again what is kept: a second assignment to an expert is wrong even if the router does not keep it.
TEST(RouterMistakes, AnExpertTwiceIsAnErrorEvenIfItIsNotKept) {
  Mistakes mistakes;
  mistakes.early = [](Routing& r) {
    r.expert[1] = r.expert[0];
    r.kept = torch::ones({2 * kTokens}, torch::kBool);
    r.kept[1] = false;
  };
  expect_error(mistakes, "returned an invalid routing: token 0 has expert 0 twice");
}

TEST(RouterMistakes, ScoresThatAreNotFiniteDoNotExcuseGates) {
  Mistakes mistakes;
  mistakes.late = [](Routing& r) {
    r.scores = r.scores / 0;
    r.gate = r.gate / (r.gate - r.gate);
  };
  expect_error(mistakes, "gate of assignment 0 is inf, although tokens, weights and logits are finite");
}

TEST(RouterMistakes, ExceptionsInChoose) {
  Mistakes mistakes;
  mistakes.on_input = [](const RouterInput&) { throw std::out_of_range("map::at"); };
  expect_error(mistakes, ": choose() failed: map::at");
  mistakes.on_input = [](const RouterInput& input) { input.tokens.matmul(torch::ones({7, 2})); };
  expect_error(mistakes, ": choose() failed: mat1 and mat2 shapes cannot be multiplied (6x4 and 7x2)");
  mistakes.on_input = [](const RouterInput& input) { router_normal(input, torch::ones({5, 3}), "noise"); };
  expect_error(mistakes, ": choose() failed: internal check failed");
  mistakes.on_input = [](const RouterInput&) { throw 3; };
  expect_error(mistakes, ": choose() failed: it threw something that is not a std::exception");
  mistakes.on_input = [](const RouterInput& input) { input.tokens.detach().mul_(2); };
  expect_error(mistakes, "returned an invalid routing: it changed its input tokens in place; work on a copy");
  mistakes.on_input = [](const RouterInput&) { fail_usage("[router] k is odd"); };  // its own message for the user
  EXPECT_EQ(testing::message_of<UsageError>([&] { run(mistakes); }), "[router] k is odd");
}

TEST(RouterMistakes, OwnLosses) {
  const auto loss = [](std::function<at::Tensor(const Routing&)> value, double weight = 1,
                       const std::string& name = "mine") {
    Mistakes mistakes;
    mistakes.own_losses = {{name, weight, std::move(value)}};
    return mistakes;
  };
  const auto one = [](const Routing&) { return torch::ones({}); };
  EXPECT_EQ(message_of([&] { run(loss(one)); }), "");
  EXPECT_EQ(message_of([&] { run(loss([](const Routing&) { return at::Tensor(); })); }), "");  // no such term
  expect_error(loss([](const Routing& r) { return r.gate; }),
               ": the loss mine is Float [12], must be a floating-point scalar []; does it lack a mean() or sum()?");
  expect_error(loss([](const Routing& r) { return r.expert.sum(); }), ": the loss mine is Long []");
  expect_error(loss([](const Routing& r) { return (r.gate * kNan).sum(); }),
               ": the loss mine is nan, although tokens, weights and logits are finite");
  expect_error(loss([](const Routing& r) { return r.target.sum(); }), ": own_losses() failed: ");
  expect_error(loss(one, kNan), ": the weight of the loss mine is nan, must be 0 or above");
  expect_error(loss(one, -1), ": the weight of the loss mine is -1, must be 0 or above");
  expect_error(loss({}), ": the loss mine has no function");
  expect_error(loss(one, 1, ""), ": a loss has no name");
  expect_error(loss(one, 1, "importance"), ": the name of the loss importance is taken");
}

TEST(RouterMistakes, DefaultLosses) {
  Mistakes mistakes;
  mistakes.default_losses = {{"swich", 0.1}};
  expect_error(mistakes, ": default_losses() names the loss \"swich\" (known: importance, load, ");
  mistakes.default_losses = {{"switch", -0.1}};
  expect_error(mistakes, ": the weight of the loss switch is -0.1, must be 0 or above");
}

TEST(RouterMistakes, Metrics) {
  Mistakes mistakes;
  mistakes.metrics = [](const Routing&) { return std::vector<RoutingMetric>{{"mine", kNan}}; };
  expect_error(mistakes, ": the metric mine is nan, although tokens, weights and logits are finite");
  mistakes.metrics = [](const Routing& r) { return std::vector<RoutingMetric>{{"mine", r.target.item<double>()}}; };
  expect_error(mistakes, ": metrics() failed: ");
  mistakes.metrics = [](const Routing& r) { return std::vector<RoutingMetric>{{"mine", r.gate.item<double>()}}; };
  expect_error(mistakes, ": metrics() failed: ");
  mistakes.metrics = [](const Routing&) { return std::vector<RoutingMetric>{{"mine", 1}, {"mine", 2}}; };
  expect_error(mistakes, ": the name of the metric mine is taken");
  mistakes.metrics = [calls = 0](const Routing&) mutable {
    return std::vector<RoutingMetric>{{cat("mine", calls++), 1}};
  };
  expect_error(mistakes, ": metrics() has the names [mine1], at first they were [mine0]; return the same ones");
}

TEST(RouterMistakes, AfterTheStep) {
  Mistakes mistakes;
  mistakes.after_step = [] { throw std::runtime_error("no buffer\nsecond line"); };
  expect_error(mistakes, ": post_step_update() failed: no buffer");
}

TEST(RouterMistakes, Cost) {
  const auto error = [](const std::function<void(RouterCost&)>& edit) {
    Mistakes mistakes;
    mistakes.cost = [=](const TokenLayout& layout) {
      RouterCost cost = token_choice_cost({}, 2, layout);
      edit(cost);
      return cost;
    };
    const MoeLayer layer(spec_with([&] { return std::make_shared<OwnRouter>(mistakes); }), {"blocks.1.mlp", kWidth, 8});
    return message_of([&] { layer.cost({1, 4, 0, 0, 0}, {}); });
  };
  EXPECT_EQ(error([](RouterCost&) {}), "");
  expect_error(error([](RouterCost& c) { c.rows = -1; }), ": cost() has rows = -1, must be finite and 0 or above");
  expect_error(error([](RouterCost& c) { c.rows = kNan; }), ": cost() has rows = nan");
  expect_error(error([](RouterCost& c) { c.active = kInfinity; }), ": cost() has active = inf, must be from 0 to 3");
  expect_error(error([](RouterCost& c) { c.per_token = 4; }), ": cost() has per_token = 4, must be from 0 to 3");
  expect_error(error([](RouterCost& c) { c.touched = -2; }), ": cost() has touched = -2, must be from 0 to 3");
  expect_error(error([](RouterCost& c) { c.cost.multiply_adds = -7; }), ": cost() has multiply_adds = -7");
  expect_error(error([](RouterCost&) { throw std::runtime_error("not written yet"); }),
               ": cost() failed: not written yet");
}

// Mixers, with whatever they return in place of a right soft routing.
class OwnMixer : public SoftRouter {
 public:
  explicit OwnMixer(std::function<void(SoftRouting&)> edit) : edit_(std::move(edit)) {}

 protected:
  SoftRouting mix(const RouterInput& input) override {
    SoftRouting soft;
    soft.layout = input.layout;
    soft.experts = kExperts;
    soft.slots = 2;
    soft.logits = torch::zeros({input.layout.images, input.layout.per_image, 2 * kExperts});
    soft.dispatch = at::softmax(soft.logits, 1);
    soft.combine = at::softmax(soft.logits, 2);
    edit_(soft);
    return soft;
  }

 private:
  std::function<void(SoftRouting&)> edit_;
};

TEST(RouterMistakes, SoftRoutings) {
  const auto error = [](const std::function<void(SoftRouting&)>& edit) {
    return message_of([&] { run(spec_with([&] { return std::make_shared<OwnMixer>(edit); })); });
  };
  EXPECT_EQ(error([](SoftRouting&) {}), "");
  expect_error(
      error([](SoftRouting& s) { s.dispatch = s.dispatch / 0; }),
      "returned an invalid routing: dispatch has NaN or infinity, although tokens, weights and logits are finite");
  expect_error(error([](SoftRouting& s) { s.slots = int64_t{1} << 62; }), "returned an invalid routing: ");
  for (at::Tensor SoftRouting::*field : {&SoftRouting::logits, &SoftRouting::dispatch, &SoftRouting::combine})
    for (const auto& damage : damages()) {
      const std::string message = error([&](SoftRouting& s) { s.*field = damage(s.*field); });
      EXPECT_TRUE(message.empty() || (message.starts_with(kTitle) && message.find('\n') == std::string::npos))
          << message;
    }
  for (int64_t SoftRouting::*field : {&SoftRouting::experts, &SoftRouting::slots})
    for (const int64_t value : {-1, 0, 1, 4}) {
      const std::string message = error([&](SoftRouting& s) { s.*field = value; });
      expect_error(message, "returned an invalid routing: ");
    }
  Mistakes mistakes;  // a router that chooses experts has no soft routing
  mistakes.late = [](Routing& r) { r.soft = std::make_shared<const SoftRouting>(); };
  expect_error(mistakes, "it has a soft routing; routers that mix tokens derive from SoftRouter");
}

// Two-level routings: the first level is checked, too.
TEST(RouterMistakes, FirstLevel) {
  for (const bool right : {true, false}) {
    Mistakes mistakes;
    mistakes.late = [=](Routing& r) {
      Routing groups = r;
      if (!right) groups.token = groups.token + 100;
      r.groups = std::make_shared<const Routing>(groups);
    };
    const std::string message = message_of([&] { run(mistakes); });
    if (right)
      EXPECT_EQ(message, "");
    else
      expect_error(message,
                   "returned an invalid routing: in groups: token of assignment 0 is 100, must be from 0 to 5");
  }
}

// In a process of its own, so that other tests do not find these components in the registries.
TEST(RouterMistakesDeathTest, AFunctionThatReturnsNull) {
  struct Nothing {
    void declare(OptionSet&) {}
  };
  const auto messages = [] {
    routers().add<Nothing>("none", "", [](const Nothing&, RouterShape) { return std::shared_ptr<Router>(); });
    expert_kinds().add<Nothing>("none", "", [](const Nothing&, ExpertShape) { return std::shared_ptr<Experts>(); });
    MoeSpec spec = read_moe_spec({{"moe", Json::object()},
                                  {"experts", {{"name", "none"}}},
                                  {"losses", Json::object()},
                                  {"router", {{"name", "none"}}}});
    std::cerr << message_of([&] { spec.make_router({4, 3}); }) << ". " << message_of([&] { spec.make_experts(4, 8); });
    std::_Exit(0);
  };
  EXPECT_EXIT(messages(), ::testing::ExitedWithCode(0),
              "^the function that makes the router none returned null. the function that makes the experts \"none\" "
              "returned null$");
}

}  // namespace sparsight::router_mistakes_test
