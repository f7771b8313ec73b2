// Every router with noise: none in evaluation, unless eval_noise asks for it; then the same samples as in training.
#include <gtest/gtest.h>

#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/random_tensor.h"

namespace sparsight::eval_noise_test {

struct EvalNoiseCase {
  std::string router;
  Json noise;  // settings with which training samples noise
};

namespace {

constexpr int64_t kWidth = 8, kExperts = 4;

const std::vector<EvalNoiseCase> kCases{
    {"softmax_topk", Json::object()},   {"noisy_topk", Json::object()},
    {"cosine", Json::object()},         {"per_image", {{"noise", 1}}},
    {"switch_top1", {{"jitter", 0.5}}}, {"gshard_top2", {{"second", "all"}, {"sample_second", true}}},
    {"hierarchical", Json::object()}};

std::shared_ptr<Router> make_router(const std::string& name, const Json& settings) {
  auto router = routers().make(name, settings, "router", RouterShape{kWidth, kExperts});
  initialize(*router, 1);
  return router;
}

Routing route(Router& router, uint64_t step, const ForwardMode& mode = ForwardMode::training()) {
  return router.route({test::random_tensor({40, kWidth}, 3, torch::kFloat), {4, 10, 1, 3, 3}, "moe", mode, {1, step}});
}

bool same(const Routing& a, const Routing& b) {
  return torch::equal(a.expert, b.expert) && torch::equal(a.gate, b.gate);
}

bool has_eval_noise(const std::string& router) {
  bool found = false;
  routers().get(router).describe([&](OptionSet& set) { found = set.find("eval_noise") != nullptr; });
  return found;
}

}  // namespace

class EvalNoise : public ::testing::TestWithParam<EvalNoiseCase> {};

TEST_P(EvalNoise, IsOffUntilAskedForAndThenThatOfTraining) {
  Json kept = GetParam().noise;
  kept["eval_noise"] = true;
  auto quiet = make_router(GetParam().router, GetParam().noise), noisy = make_router(GetParam().router, kept);
  const Routing second = route(*quiet, 2), third = route(*quiet, 3);
  EXPECT_FALSE(same(second, third));
  EXPECT_TRUE(same(route(*noisy, 2), second));
  constexpr ForwardMode kEvaluation = ForwardMode::evaluation();
  EXPECT_TRUE(same(route(*quiet, 2, kEvaluation), route(*quiet, 3, kEvaluation)));
  EXPECT_FALSE(route(*quiet, 2, kEvaluation).noise_scale.defined());
  EXPECT_TRUE(same(route(*noisy, 2, kEvaluation), second));
  EXPECT_TRUE(same(route(*noisy, 3, kEvaluation), third));
}

INSTANTIATE_TEST_SUITE_P(Registry, EvalNoise, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.router; });

TEST(EvalNoiseOfTheRegistry, IsNotSampledWhereNoiseIsOff) {
  for (const char* name : {"noisy_topk", "hierarchical"}) {
    auto router = make_router(name, {{"noise", false}, {"eval_noise", true}});
    EXPECT_TRUE(same(route(*router, 2), route(*router, 3))) << name;
    EXPECT_TRUE(same(route(*router, 2, {}), route(*router, 3, {}))) << name;
  }
}

// random samples in evaluation as in training; soft routers have no noise.
TEST(EvalNoiseOfTheRegistry, EveryRouterWithNoiseInTrainingHasIt) {
  for (const std::string& name : routers().names()) {
    auto router = make_router(name, Json::object());
    if (name == "random" || router->mixes_tokens()) continue;
    const bool samples = !same(route(*router, 2), route(*router, 3));
    EXPECT_TRUE(!samples || has_eval_noise(name)) << name;
    EXPECT_TRUE(same(route(*router, 2, {}), route(*router, 3, {}))) << name;
  }
  for (const EvalNoiseCase& c : kCases) EXPECT_TRUE(has_eval_noise(c.router)) << c.router;
}

}  // namespace sparsight::eval_noise_test
