// "k at inference different from training", for every router that has a number of choices: eval_<name> replaces
// <name> in evaluation only.
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/random_tensor.h"

namespace sparsight::eval_choices_test {

struct EvalChoicesCase {
  std::string router;
  Json settings;          // eval_<name>
  int64_t assignments;    // of 40 tokens in evaluation
  bool per_token = true;  // each token has equally many
};

namespace {

constexpr int64_t kImages = 4, kPerImage = 10, kTokens = kImages * kPerImage, kWidth = 8, kExperts = 4;

// All settings that are a number of choices.
const std::vector<std::string> kCounts{"k", "k_groups", "experts_per_token", "patches"};

std::vector<EvalChoicesCase> all_cases() {
  std::vector<EvalChoicesCase> cases;
  for (const std::string router :
       {"softmax_topk", "noisy_topk", "cosine", "sigmoid_bias", "hash", "random", "round_robin", "per_image",
        "sinkhorn", "switch_top1", "base", "gshard_top2", "dense_softmax", "balanced_batchwise"})
    for (const int64_t k : {1, 3, 4}) cases.push_back({router, {{"eval_k", k}}, k * kTokens});
  // 2 groups of 2 experts.
  cases.push_back({"hierarchical", {{"eval_k", 1}}, 2 * 1 * kTokens});
  cases.push_back({"hierarchical", {{"eval_k_groups", 1}}, 1 * 2 * kTokens});
  cases.push_back({"hierarchical", {{"eval_k_groups", 1}, {"eval_k", 1}}, 1 * 1 * kTokens});
  cases.push_back({"balanced_hierarchical", {{"eval_k_groups", 2}, {"eval_k", 1}}, 2 * 1 * kTokens});
  cases.push_back({"balanced_hierarchical", {{"eval_k_groups", 1}, {"eval_k", 2}}, 1 * 2 * kTokens});
  cases.push_back({"expert_choice", {{"eval_experts_per_token", 3}}, kExperts * 30, false});  // 3 * 40 / 4 each
  cases.push_back({"expert_choice", {{"eval_experts_per_token", 0.5}}, kExperts * 5, false});
  cases.push_back({"patch_choice", {{"eval_patches", 3}}, kExperts * kImages * 3, false});
  return cases;
}

std::shared_ptr<Router> make_router(const std::string& name, const Json& settings) {
  auto router = routers().make(name, settings, "router", RouterShape{kWidth, kExperts});
  initialize(*router, 1);
  const torch::NoGradGuard no_grad;
  for (auto& p : router->named_parameters())  // some start at 0
    p.value().add_(test::random_tensor(p.value().sizes(), 78, torch::kFloat) * 0.2);
  return router;
}

Routing route(Router& router, const ForwardMode& mode) {
  const at::Tensor tokens = test::random_tensor({kTokens, kWidth}, 3, torch::kFloat);
  return router.route({tokens, {kImages, kPerImage, 1, 3, 3}, "moe", mode, {1, 2}});
}

bool has(const std::string& router, const std::string& setting) {
  bool found = false;
  routers().get(router).describe([&](OptionSet& set) { found = set.find(setting) != nullptr; });
  return found;
}

std::string case_name(const ::testing::TestParamInfo<EvalChoicesCase>& info) {
  std::string name = info.param.router;
  for (const auto& [key, value] : info.param.settings.items()) name += "_" + key + "_" + value.dump();
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}

}  // namespace

class EvalChoices : public ::testing::TestWithParam<EvalChoicesCase> {};

TEST_P(EvalChoices, ReplaceThoseOfTrainingInEvaluationOnly) {
  auto router = make_router(GetParam().router, GetParam().settings),
       plain = make_router(GetParam().router, Json::object());
  const Routing training = route(*router, ForwardMode::training()), before = route(*plain, ForwardMode::training());
  EXPECT_TRUE(torch::equal(training.token, before.token) && torch::equal(training.expert, before.expert));
  EXPECT_TRUE(torch::equal(training.gate, before.gate));
  const Routing r = route(*router, ForwardMode::evaluation());
  EXPECT_EQ(r.token.size(0), GetParam().assignments);
  EXPECT_EQ(r.chosen_count.sum().item<int64_t>(), GetParam().assignments);
  EXPECT_EQ(std::get<0>(at::_unique(r.token * kExperts + r.expert)).size(0), GetParam().assignments);
  if (!GetParam().per_token) return;
  EXPECT_TRUE(torch::equal(torch::bincount(r.token, {}, kTokens),
                           torch::full({kTokens}, GetParam().assignments / kTokens, torch::kLong)));
}

TEST_P(EvalChoices, MoreThanThereAreIsAnErrorOfOneLine) {
  for (const auto& [key, value] : GetParam().settings.items()) {
    try {
      auto router = make_router(GetParam().router, {{key, 50}});
      route(*router, ForwardMode::evaluation());
      FAIL() << key << " = 50 was accepted";
    } catch (const UsageError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("50"), std::string::npos) << text;
      EXPECT_NE(text.find("[router]"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, EvalChoices, ::testing::ValuesIn(all_cases()), case_name);

TEST(EvalChoicesOfTheRegistry, EveryRouterWithANumberOfChoicesHasThem) {
  for (const std::string& router : routers().names())
    for (const std::string& count : kCounts) {
      if (!has(router, count)) continue;
      EXPECT_TRUE(has(router, "eval_" + count)) << router;
      bool tested = false;
      for (const EvalChoicesCase& c : all_cases())
        tested = tested || (c.router == router && c.settings.contains("eval_" + count));
      EXPECT_TRUE(tested) << router << " " << count;
    }
}

}  // namespace sparsight::eval_choices_test
