// Settings that affect the chosen experts and their gates, through the router that reads them: each row is a setting
// and its result for an example that is small enough to compute by hand.
#include <cctype>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "sparsight/io/weights.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::router_settings_test {

struct SettingCase {
  std::string router;
  bool training;
  Json settings;
  std::vector<int64_t> expert;  // by token, then by rank
  std::vector<double> gate;
};

namespace {

using test::near;
using test::table;

constexpr bool kTraining = true, kEvaluation = false;

struct Example {
  at::Tensor tokens;  // [N,D]
  int64_t images = 1, experts = 0;
  NamedTensors weights = {};
  Json settings = Json::object();  // of all rows
  std::map<std::string, at::Tensor> samples = {};
};

Example make_example(const std::string& router) {
  // The worked example of GMoE's router: cosines of (3,4) with (1,0), (0,1), (1,1), over the temperature 1/2, are 1.2
  // 1.6 1.979899, their softmax .213992 .319238 .466770.
  if (router == "cosine")
    return {table({{3, 4}}),
            1,
            3,
            {{"projector", torch::eye(2, torch::kDouble)}, {"codebook", table({{1, 0, 1}, {0, 1, 1}})}},
            {{"width", 2}, {"noise", 0}}};
  // The logits 1 2 0 of the mean of two tokens: .244728 .665241 .090031.
  if (router == "per_image")
    return {table({{0.5}, {1.5}}), 1, 3, {{"weight", table({{1}, {2}, {0}})}}, {{"norm", "none"}}};
  // The gates of the three tokens: first .657010 .768525 .710950, second .342990 .231475 .289050.
  if (router == "gshard_top2")
    return {test::example_tokens(),
            1,
            4,
            {{"weight", test::example_weight().t()}},
            Json::object(),
            {{"second", table({{.70}, {.40}, {.60}})}}};
  if (router == "sigmoid_bias")
    return {table({{1}}), 1, 6, {{"weight", table({{.9}, {.1}, {.1}, {.6}, {.6}, {.5}}).logit()}}};
  // Unit vectors as tokens, so that rows of logits are columns of weights.
  if (router == "sinkhorn")
    return {torch::eye(4, torch::kDouble), 1, 2, {{"weight", table({{2000, 2000, 200, 2}, {2, 2, 2, 2}}).log()}}};
  return {torch::zeros({5, 1}, torch::kDouble), 1, 5};  // hash: by the positions 0 to 4
}

std::shared_ptr<Router> make_router(const std::string& name, const Json& settings, at::ScalarType type,
                                    const Example& example) {
  auto router = routers().make(name, settings, "router", RouterShape{example.tokens.size(1), example.experts});
  initialize(*router, 1);
  router->to(type);
  const NamedTensors list = named_weights(*router);
  const std::map<std::string, at::Tensor> own(list.begin(), list.end());
  const torch::NoGradGuard no_grad;
  for (const auto& [weight, values] : example.weights) own.at(weight).copy_(values);
  return router;
}

Routing route(Router& router, const Example& example, at::ScalarType type,
              const ForwardMode& mode = ForwardMode::training()) {
  const int64_t per_image = example.tokens.size(0) / example.images;
  RouterInput input{example.tokens.to(type), {example.images, per_image, 0, 0, 0}, "moe", mode, {1, 2}};
  input.context.samples = example.samples;
  return router.route(input);
}

std::vector<SettingCase> cosine_cases() {
  const double first = .593849, second = .406151;  // .466770 and .319238 over their sum .786008
  return {{"cosine", kEvaluation, {{"renormalize", "off"}}, {2}, {.466770}},
          {"cosine", kEvaluation, {{"renormalize", "on"}}, {2}, {1}},
          {"cosine", kEvaluation, {{"renormalize", "auto"}}, {2}, {.466770}},
          {"cosine", kEvaluation, {{"k", 2}, {"renormalize", "off"}}, {2, 1}, {.466770, .319238}},
          {"cosine", kEvaluation, {{"k", 2}, {"renormalize", "on"}}, {2, 1}, {first, second}},
          {"cosine", kEvaluation, {{"k", 2}, {"renormalize", "auto"}}, {2, 1}, {first, second}},
          // auto goes by the number of choices that are made
          {"cosine", kEvaluation, {{"eval_k", 2}}, {2, 1}, {first, second}},
          {"cosine", kTraining, {{"eval_k", 2}}, {2}, {.466770}},
          // softmax of 2.4 3.2 3.959798
          {"cosine", kEvaluation, {{"temperature", 0.25}}, {2}, {.595969}}};
}

std::vector<SettingCase> per_image_cases() {
  // .665241 and .244728 over their sum: 1 / (1 + 1/e) and 1 / (1 + e)
  return {
      {"per_image", kEvaluation, {{"k", 2}}, {1, 0, 1, 0}, {.665241, .244728, .665241, .244728}},
      {"per_image", kEvaluation, {{"k", 2}, {"renormalize", true}}, {1, 0, 1, 0}, {.731059, .268941, .731059, .268941}},
      {"per_image", kTraining, {{"k", 2}, {"renormalize", true}}, {1, 0, 1, 0}, {.731059, .268941, .731059, .268941}},
      {"per_image", kEvaluation, {{"renormalize", false}}, {1, 1}, {.665241, .665241}},
      {"per_image", kEvaluation, {{"renormalize", true}}, {1, 1}, {1, 1}}};
}

std::vector<SettingCase> gshard_cases() {
  const std::vector<int64_t> all{0, 3, 2, 1, 1, 2}, none{0, 2, 1}, but_token_1{0, 3, 2, 1, 2},
      token_1_alone{0, 2, 1, 1};
  const std::vector<double> of_all{.657010, .342990, .768525, .231475, .710950, .289050},
      of_none{.657010, .768525, .710950}, of_but_token_1{.657010, .342990, .768525, .710950, .289050},
      of_token_1_alone{.657010, .768525, .231475, .710950};
  const std::string name = "gshard_top2";
  return {{name, kEvaluation, Json::object(), all, of_all},
          {name, kEvaluation, {{"second", "none"}, {"eval_second", "all"}}, all, of_all},
          {name, kTraining, {{"second", "none"}, {"eval_second", "all"}}, none, of_none},
          {name, kEvaluation, {{"second", "all"}, {"eval_second", "none"}}, none, of_none},
          {name, kTraining, {{"second", "all"}, {"eval_second", "none"}}, all, of_all},
          {name, kEvaluation, {{"eval_second", "threshold"}}, none, of_none},  // all are below 0.5
          {name, kEvaluation, {{"eval_second", "threshold"}, {"threshold", 0.25}}, but_token_1, of_but_token_1},
          {name, kTraining, {{"second", "threshold"}, {"threshold", 0.25}}, but_token_1, of_but_token_1},
          // The samples .70 .40 .60 are compared with twice the gates, .685980 .462950 .578100, ...
          {name, kEvaluation, {{"eval_second", "random"}}, token_1_alone, of_token_1_alone},
          {name, kTraining, {{"eval_second", "none"}}, token_1_alone, of_token_1_alone},
          // ... or with the gates over 0.4: .857475 .578688 .722625
          {name, kEvaluation, {{"eval_second", "random"}, {"threshold", 0.4}}, all, of_all}};
}

std::vector<SettingCase> sigmoid_bias_cases() {
  // Scores .9 .1 .1 .6 .6 .5. A group counts for the sum of its k / kept_groups best: of two groups 1.0 and 1.2, of
  // three 1.0, .7 and 1.1.
  const std::string name = "sigmoid_bias";
  return {{name, kEvaluation, Json::object(), {0, 3}, {.9 / 1.5, .6 / 1.5}},
          {name, kEvaluation, {{"scale", 2.5}}, {0, 3}, {1.5, 1}},
          {name, kTraining, {{"scale", 2.5}}, {0, 3}, {1.5, 1}},
          {name, kEvaluation, {{"groups", 2}}, {3, 4}, {.5, .5}},
          {name, kTraining, {{"groups", 2}}, {3, 4}, {.5, .5}},
          {name, kEvaluation, {{"groups", 2}, {"kept_groups", 2}}, {0, 3}, {.9 / 1.5, .6 / 1.5}},
          {name, kEvaluation, {{"groups", 3}}, {4, 5}, {.6 / 1.1, .5 / 1.1}},
          {name, kEvaluation, {{"k", 4}}, {0, 3, 4, 5}, {.9 / 2.6, .6 / 2.6, .6 / 2.6, .5 / 2.6}},
          {name,
           kEvaluation,
           {{"k", 4}, {"groups", 3}, {"kept_groups", 2}},
           {0, 4, 5, 1},
           {.9 / 2.1, .6 / 2.1, .5 / 2.1, .1 / 2.1}}};
}

std::vector<SettingCase> sinkhorn_cases() {
  // The odds of expert 0 are 1000 1000 100 1. An iteration multiplies them by (4 - s) / s, where s is the sum of the
  // odds / (odds + 1): those of token 2 are 14.68 4.567 1.908 1.056 .7405 after 1 to 5 iterations and .495 after 20,
  // those of token 3 below 1 from the first on. A temperature of 2 takes the square roots of the odds: 1.948 1.114 .925
  // .875 (computed in Python). Gates do not follow.
  const std::vector<int64_t> greedy{0, 0, 0, 0}, after_four{0, 0, 0, 1}, balanced{0, 0, 1, 1};
  const double thousand = 1000. / 1001, hundred = 100. / 101;
  const std::vector<double> of_after_four{thousand, thousand, hundred, .5},
      of_balanced{thousand, thousand, 1. / 101, .5};
  const std::string name = "sinkhorn";
  return {{name, kTraining, {{"iterations", 0}}, greedy, of_after_four},
          {name, kTraining, {{"iterations", 4}}, after_four, of_after_four},
          {name, kTraining, {{"iterations", 5}}, balanced, of_balanced},
          {name, kTraining, Json::object(), balanced, of_balanced},
          {name, kEvaluation, Json::object(), greedy, of_after_four},
          {name, kTraining, {{"iterations", 2}, {"temperature", 2}}, after_four, of_after_four},
          {name, kTraining, {{"iterations", 4}, {"temperature", 2}}, balanced, of_balanced},
          // v / (v + 1) of 2000, 200 and 2
          {name, kTraining, {{"gate", "sigmoid"}}, balanced, {2000. / 2001, 2000. / 2001, 2. / 3, 2. / 3}},
          {name, kEvaluation, {{"gate", "sigmoid"}}, greedy, {2000. / 2001, 2000. / 2001, 200. / 201, 2. / 3}}};
}

std::vector<SettingCase> hash_cases() {
  // The first number of SplitMix64 from a seed, modulo 5; that seed is number id + 1 of SplitMix64 from the setting
  // (computed in Python).
  const std::vector<double> one(5, 1);
  return {{"hash", kEvaluation, Json::object(), {0, 0, 0, 2, 4}, one},
          {"hash", kEvaluation, {{"seed", 1}}, {3, 1, 4, 0, 4}, one},
          {"hash", kTraining, {{"seed", 1}}, {3, 1, 4, 0, 4}, one},
          {"hash", kEvaluation, {{"seed", 7}}, {1, 1, 2, 2, 2}, one}};
}

std::vector<SettingCase> all_cases() {
  std::vector<SettingCase> cases;
  for (const auto& list :
       {cosine_cases(), per_image_cases(), gshard_cases(), sigmoid_bias_cases(), sinkhorn_cases(), hash_cases()})
    cases.insert(cases.end(), list.begin(), list.end());
  return cases;
}

std::string case_name(const ::testing::TestParamInfo<SettingCase>& info) {
  std::string name = info.param.router + (info.param.training ? "_training" : "_evaluation");
  for (const auto& [key, value] : info.param.settings.items()) name += "_" + key + "_" + value.dump();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

}  // namespace

class RouterSettings : public ::testing::TestWithParam<SettingCase> {};

TEST_P(RouterSettings, DecideWhoIsChosenAndTheGates) {
  const SettingCase& c = GetParam();
  const Example example = make_example(c.router);
  Json settings = example.settings;
  settings.update(c.settings);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto router = make_router(c.router, settings, type, example);
    const ForwardMode mode = c.training ? ForwardMode::training() : ForwardMode::evaluation();
    const Routing r = route(*router, example, type, mode);
    EXPECT_TRUE(torch::equal(r.expert, torch::tensor(c.expert, torch::kLong))) << r.expert;
    EXPECT_TRUE(near(r.gate, torch::tensor(c.gate, torch::kDouble), test::example_tolerance(type)));
    EXPECT_EQ(r.gate.scalar_type(), type);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, RouterSettings, ::testing::ValuesIn(all_cases()), case_name);

// T14: without the bias the choices would be 0 3, 2 1, 1 2.
TEST(RouterSettingsOfTheRegistry, TheBiasOfSigmoidBiasIsWhatChoicesAreMadeWith) {
  const Example example{
      test::example_tokens(),
      1,
      4,
      {{"weight", test::example_weight().t()}, {"bias", torch::tensor({0.05, -0.10, 0.00, 0.30}, torch::kDouble)}}};
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const Routing r = route(*make_router("sigmoid_bias", Json::object(), type, example), example, type);
    EXPECT_TRUE(torch::equal(r.expert, torch::tensor({3, 0, 2, 3, 3, 1}, torch::kLong)));
    EXPECT_TRUE(near(test::dense_gates(r),
                     table({{0.556606, 0, 0, 0.443394}, {0, 0, 0.709793, 0.290207}, {0, 0.598053, 0, 0.401947}}),
                     test::example_tolerance(type)));
  }
}

// noise / E, sampled independently for each token and expert; each image is one token. The bound: five standard errors.
TEST(RouterSettingsOfTheRegistry, NoiseHasTheStandardDeviationThatIsAskedFor) {
  constexpr int64_t kTokens = 5000, kWidth = 8, kExperts = 6;
  const Example example{test::random_tensor({kTokens, kWidth}, 3), kTokens, kExperts};
  const auto allowed = [](double deviation, int64_t samples) {
    return 5 * deviation / std::sqrt(2 * static_cast<double>(samples));
  };
  const auto size = [](const at::Tensor& x) { return x.square().mean().sqrt().item<double>(); };
  struct Case {
    std::string name;
    Json settings;
    double noise;
  };
  const std::vector<Case> cases{
      {"cosine", Json::object(), 1},                                             // GMoE: 1 / E
      {"cosine", {{"noise", 3}}, 3},       {"softmax_topk", Json::object(), 1},  // V-MoE: 1 / E
      {"softmax_topk", {{"noise", 3}}, 3}, {"per_image", {{"noise", 1}}, 1},    {"per_image", {{"noise", 3}}, 3}};
  for (const auto& [name, settings, noise] : cases)
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const Routing r = route(*make_router(name, settings, type, example), example, type);
      const at::Tensor drawn = (r.noisy_logits - r.clean_logits).detach().to(torch::kDouble);
      const double wanted = noise / static_cast<double>(kExperts);
      EXPECT_NEAR(r.noise_scale.item<double>(), wanted, 1e-7) << name;
      EXPECT_NEAR(size(drawn), wanted, allowed(wanted, drawn.numel())) << name << settings;
      EXPECT_TRUE(near(drawn.square().mean(0).sqrt(), torch::full({kExperts}, wanted), allowed(wanted, kTokens)))
          << name << settings;
      // The mean over a token's experts would not shrink if they shared their noise.
      const double of_mean = wanted / std::sqrt(static_cast<double>(kExperts));
      EXPECT_NEAR(size(drawn.mean(1)), of_mean, allowed(of_mean, kTokens)) << name << settings;
    }
}

TEST(RouterSettingsOfTheRegistry, NoiseOfZeroIsNone) {
  const Example example{test::random_tensor({40, 8}, 3), 40, 6};
  for (const std::string name : {"cosine", "softmax_topk", "per_image"}) {
    const Routing r = route(*make_router(name, {{"noise", 0}}, torch::kFloat, example), example, torch::kFloat);
    EXPECT_FALSE(r.noise_scale.defined()) << name;
    EXPECT_TRUE(torch::equal(r.noisy_logits, r.clean_logits)) << name;
  }
}

}  // namespace sparsight::router_settings_test
