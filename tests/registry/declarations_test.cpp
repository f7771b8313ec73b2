// What routers and losses declare about themselves, and its effect elsewhere (Python, guidance, reports): each check
// passes for everything registered, and fails for a component made to fail it.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/errors.h"
#include "tests/support/random_tensor.h"

namespace sparsight::declarations_test {
namespace {

constexpr int64_t kImages = 4, kPerImage = 10, kTokens = kImages * kPerImage, kWidth = 8, kExperts = 4;

using Problems = std::vector<std::string>;

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const RoutingLoss& loss : routing_losses()) names.push_back(loss.name);
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

RouterInput make_input(int64_t images, const ForwardMode& mode = ForwardMode::training()) {
  return {test::random_tensor({images * kPerImage, kWidth}, 3, torch::kFloat),
          {images, kPerImage, 1, 3, 3},
          "moe",
          mode,
          {1, 2}};
}

// In training and in evaluation.
Problems undeclared_draws(Router& router) {
  std::set<std::string> requested;
  for (const ForwardMode& mode : {ForwardMode::training(), ForwardMode::evaluation()}) {
    RouterInput input = make_input(kImages, mode);
    input.context.requested = &requested;
    router.route(input);
  }
  Problems problems;
  for (const std::string& purpose : requested)
    if (!has(router.random_purposes(), purpose)) problems.push_back("samples \"" + purpose + "\" without saying so");
  return problems;
}

Problems wrong_losses(Router& router) {
  Problems problems;
  for (const LossWeight& loss : router.default_losses())
    if (!has(loss_names(), loss.name) || !(loss.weight > 0))
      problems.push_back("has the weight " + std::to_string(loss.weight) + " for the loss " + loss.name);
  for (const RouterLoss& loss : router.own_losses()) {
    if (has(loss_names(), loss.name)) problems.push_back("calls its own loss " + loss.name + ", as one of all routers");
    if (!(loss.weight > 0)) problems.push_back("has no weight for its own loss " + loss.name);
    for (const int64_t images : {kImages, int64_t{0}}) {
      const at::Tensor value = loss.value(router.route(make_input(images)));
      if (value.defined() && (value.dim() != 0 || !std::isfinite(value.item<double>())))
        problems.push_back(cat("its loss ", loss.name, " is no finite scalar for ", images, " images"));
      if (value.defined() && images > 0 && !value.requires_grad())
        problems.push_back("its loss " + loss.name + " trains nothing");
    }
  }
  return problems;
}

// Router::route refuses metrics that are not finite or whose names change.
Problems wrong_metrics(Router& router) {
  try {
    router.route(make_input(kImages));
    router.route(make_input(0));
  } catch (const Error& error) {
    return {error.what()};
  }
  return {};
}

Problems find_problems(Router& router) {
  Problems all;
  for (const Problems& found : {undeclared_draws(router), wrong_losses(router), wrong_metrics(router)})
    all.insert(all.end(), found.begin(), found.end());
  return all;
}

// A soft router mixes tokens: nothing below applies to it.
std::vector<std::string> choosing_routers() {
  std::vector<std::string> names;
  for (const std::string& name : routers().names())
    if (!routers().make(name, Json::object(), "router", RouterShape{kWidth, kExperts})->mixes_tokens())
      names.push_back(name);
  return names;
}

// A router that sends every token to expert 0, with nothing declared; tests add mistakes.
class FakeRouter : public Router {
 public:
  std::vector<LossWeight> paper;
  std::vector<RouterLoss> own;
  std::function<std::vector<RoutingMetric>(const Routing&)> report;
  bool samples = false;
  std::vector<LossWeight> default_losses() const override { return paper; }
  std::vector<RouterLoss> own_losses() const override { return own; }
  std::vector<RoutingMetric> metrics(const Routing& r) const override {
    return report ? report(r) : std::vector<RoutingMetric>();
  }

 protected:
  Routing choose(const RouterInput& input) override {
    Routing r;
    r.tokens = input.tokens.size(0), r.experts = kExperts;
    if (samples) router_uniform(input, input.tokens, 1, "surprise");
    choose_per_token(r, torch::zeros({r.tokens, 1}, torch::kLong), torch::ones({r.tokens, 1}));
    finish_routing(r);
    return r;
  }
};

const auto test_name = [](const auto& info) { return info.param; };

}  // namespace

class DeclarationsOfRouter : public ::testing::TestWithParam<std::string> {};

TEST_P(DeclarationsOfRouter, AreWhatItDoes) {
  Json settings = {{"name", GetParam()}};
  // Settings with which it samples all that it can.
  routers().get(GetParam()).describe([&](OptionSet& set) {
    if (set.find("sample_second")) settings["sample_second"] = true;
    if (const Option* noise = set.find("noise"); noise && noise->type == "number") settings["noise"] = 1;
  });
  const auto router = make_router({{"router", settings}}, {kWidth, kExperts});
  initialize(*router, 1);
  EXPECT_EQ(find_problems(*router), Problems());
  EXPECT_FALSE(router->needs_target());  // not by default: data without super-classes is the usual case
}

INSTANTIATE_TEST_SUITE_P(Registry, DeclarationsOfRouter, ::testing::ValuesIn(choosing_routers()), test_name);

TEST(Declarations, TheChecksFindWhatIsWrong) {
  FakeRouter fake;
  EXPECT_EQ(find_problems(fake), Problems());
  fake.samples = true;
  EXPECT_EQ(undeclared_draws(fake), Problems{"samples \"surprise\" without saying so"});
  fake.paper = {{"importence", 0.1}, {"load", 0}};
  const auto constant = [](double value) { return [=](const Routing&) { return torch::tensor(value); }; };
  fake.own = {{"load", 1, constant(1)}, {"mine", 0, constant(1)}, {"bad", 1, constant(NAN)}};
  EXPECT_EQ(wrong_losses(fake),
            (Problems{"has the weight 0.100000 for the loss importence", "has the weight 0.000000 for the loss load",
                      "calls its own loss load, as one of all routers", "its loss load trains nothing",
                      "has no weight for its own loss mine", "its loss mine trains nothing",
                      "its loss bad is no finite scalar for 4 images", "its loss bad trains nothing",
                      "its loss bad is no finite scalar for 0 images"}));
  const auto complaint = [](const std::function<std::vector<RoutingMetric>(const Routing&)>& report) {
    FakeRouter reporting;
    reporting.report = report;
    const Problems found = wrong_metrics(reporting);
    return found.empty() ? "" : found[0];
  };
  const auto other_names = complaint([](const Routing& r) {
    return r.tokens == 0 ? std::vector<RoutingMetric>() : std::vector<RoutingMetric>{{"a", 1}};
  });
  EXPECT_NE(other_names.find("return the same ones for every routing"), std::string::npos) << other_names;
  const auto infinite = complaint([](const Routing& r) {
    return std::vector<RoutingMetric>{{"mean", 1. / static_cast<double>(r.tokens)}};
  });
  EXPECT_NE(infinite.find("the metric mean is inf"), std::string::npos) << infinite;
}

TEST(Declarations, LossesThatNeedATargetAreThoseWithoutAValueWhereThereIsNone) {
  auto router = routers().make("noisy_topk", Json::object(), "router", RouterShape{kWidth, kExperts});
  initialize(*router, 1);
  for (const RoutingLoss& loss : routing_losses()) {
    EXPECT_FALSE(loss.help.empty()) << loss.name;
    Routing routing = router->route(make_input(kImages));
    routing.threshold = routing.scores.detach().mean(0);
    EXPECT_EQ(loss.value(routing, LossVariants()).defined(), !loss.needs_target) << loss.name;
    routing.target = torch::full({kImages, kExperts}, 1.0 / kExperts);
    EXPECT_TRUE(loss.value(routing, LossVariants()).defined()) << loss.name;
  }
}

// tests/e2e/own_router_test.sh adds a new loss and gives it a weight by name: here it would stay for other tests.
TEST(Declarations, ALossHasANameOfItsOwn) {
  for (const std::string name : {"load", "switch_form"}) {
    const auto add = [&] {
      add_routing_loss({name, "", [](const Routing&, const LossVariants&) { return at::Tensor(); }});
    };
    EXPECT_EQ(testing::error_text<UsageError>(add),
              "[losses] already has a setting \"" + name + "\"; register the loss under another name");
  }
}

TEST(Declarations, ARouterIsRegisteredOnce) {
  Registry<std::shared_ptr<Router>, RouterShape> list("router");
  struct None {
    void declare(OptionSet&) {}
  };
  const auto make = [](const None&, RouterShape) { return std::make_shared<FakeRouter>(); };
  list.add<None>("mine", "", make);
  EXPECT_EQ(testing::error_text<UsageError>([&] { list.add<None>("mine", "", make); }),
            "there is a router \"mine\" already; register it under another name");
}

}  // namespace sparsight::declarations_test
