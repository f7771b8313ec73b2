// Mistakes in what a router of one's own returns beside its routings: losses, metrics, cost. See
// router_mistakes_test.cpp.
#include <cstdlib>
#include <iostream>

#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/validate_router.h"
#include "tests/moe/own_router.h"

namespace sparsight::router_functions_test {

using namespace testing::own_router;

TEST(RouterFunctions, OwnLosses) {
  const auto loss = [](std::function<at::Tensor(const Routing&)> value, double weight = 1,
                       const std::string& name = "mine") {
    Mistakes mistakes;
    mistakes.own_losses = {{name, weight, std::move(value)}};
    return mistakes;
  };
  const auto one = [](const Routing&) { return torch::ones({}); };
  EXPECT_EQ(error_text([&] { run(loss(one)); }), "");
  EXPECT_EQ(error_text([&] { run(loss([](const Routing&) { return at::Tensor(); })); }), "");  // no such term
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
  expect_error(loss(one, 1, "importance"), ": the loss importance has the name of another one");
}

TEST(RouterFunctions, DefaultLosses) {
  Mistakes mistakes;
  mistakes.default_losses = {{"swich", 0.1}};
  expect_error(mistakes, ": default_losses() names the loss \"swich\" (known: importance, load, ");
  mistakes.default_losses = {{"switch", -0.1}};
  expect_error(mistakes, ": the weight of the loss switch is -0.1, must be 0 or above");
}

TEST(RouterFunctions, Metrics) {
  Mistakes mistakes;
  mistakes.metrics = [](const Routing&) { return std::vector<RoutingMetric>{{"mine", kNan}}; };
  expect_error(mistakes, ": the metric mine is nan, although tokens, weights and logits are finite");
  mistakes.metrics = [](const Routing& r) { return std::vector<RoutingMetric>{{"mine", r.target.item<double>()}}; };
  expect_error(mistakes, ": metrics() failed: ");
  mistakes.metrics = [](const Routing& r) { return std::vector<RoutingMetric>{{"mine", r.gate.item<double>()}}; };
  expect_error(mistakes, ": metrics() failed: ");
  mistakes.metrics = [](const Routing&) { return std::vector<RoutingMetric>{{"mine", 1}, {"mine", 2}}; };
  expect_error(mistakes, ": the metric mine has the name of another one");
  mistakes.metrics = [](const Routing&) { return std::vector<RoutingMetric>{{"importance", 1}}; };
  expect_error(mistakes, ": the metric importance has the name of another one");
  mistakes.metrics = [calls = 0](const Routing&) mutable {
    return std::vector<RoutingMetric>{{cat("mine", calls++), 1}};
  };
  expect_error(mistakes, ": metrics() has the names [mine1], at first they were [mine0]; return the same ones");
}

TEST(RouterFunctions, AfterTheStep) {
  Mistakes mistakes;
  mistakes.on_post_step = [] { throw std::runtime_error("no buffer\nsecond line"); };
  expect_error(mistakes, ": post_step_update() failed: no buffer");
}

TEST(RouterFunctions, Cost) {
  const auto error = [](const std::function<void(RouterCost&)>& edit) {
    Mistakes mistakes;
    mistakes.cost = [=](const TokenLayout& layout) {
      RouterCost cost = token_choice_cost({}, 2, layout);
      edit(cost);
      return cost;
    };
    const MoeLayer layer(spec_with([&] { return std::make_shared<OwnRouter>(mistakes); }), {"blocks.1.mlp", kWidth, 8});
    return error_text([&] { layer.cost({1, 4, 0, 0, 0}, {}); });
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

// In a process of its own, so that other tests do not find these components in the registries.
TEST(RouterFunctionsDeathTest, AFunctionThatReturnsNull) {
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
    std::cerr << error_text([&] { spec.make_router({4, 3}); }) << ". " << error_text([&] { spec.make_experts(4, 8); });
    std::_Exit(0);
  };
  EXPECT_EXIT(messages(), ::testing::ExitedWithCode(0),
              "^the function that makes the router none returned null. the function that makes the experts \"none\" "
              "returned null$");
}

}  // namespace sparsight::router_functions_test
