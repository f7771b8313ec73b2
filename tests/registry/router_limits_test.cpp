// Every registered router and loss at the limits: no tokens, one expert, too many choices, tokens that
// are all the same, NaN and infinity, other types and memory layouts, other numbers of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/io/safetensors.h"
#include "sparsight/io/weights.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/ops/top_experts.h"
#include "tests/registry/limits.h"
#include "tests/support/errors.h"
#include "tests/support/layouts.h"
#include "tests/support/program.h"

namespace sparsight::limits_test {
namespace {

// Indices within bounds, no (token, expert) pair twice, groups of the kept assignments.
void expect_consistent(const Routing& r, int64_t experts) {
  const int64_t assignments = r.token.size(0);
  if (assignments > 0) {
    EXPECT_GE(r.token.min().item<int64_t>(), 0);
    EXPECT_LT(r.token.max().item<int64_t>(), r.tokens);
    EXPECT_GE(r.expert.min().item<int64_t>(), 0);
    EXPECT_LT(r.expert.max().item<int64_t>(), experts);
  }
  EXPECT_EQ(std::get<0>(at::_unique(r.token * experts + r.expert)).size(0), assignments);
  EXPECT_EQ(r.offsets[experts].item<int64_t>(), r.order.size(0));
  EXPECT_TRUE(torch::equal(std::get<0>(r.order.sort()), torch::nonzero(r.kept).squeeze(1)));
}

// While training, one token's choice depends on others of the batch.
const std::set<std::string> kBatchRouters{"balanced_batchwise", "balanced_hierarchical", "base", "expert_choice",
                                          "sinkhorn"};

RoutingContext guided() {
  RoutingContext pool;
  pool.target = torch::full({kImages, kExperts}, 1.0 / kExperts);
  return pool;
}

const auto test_name = [](const auto& info) { return info.param; };

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const RoutingLoss& loss : routing_losses()) names.push_back(loss.name);
  return names;
}

}  // namespace

class RouterAtItsLimits : public ::testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<MoeLayer> layer() const { return make_layer({.router = GetParam()}); }
  // Whether a token may have fewer experts than the router allows it.
  bool skips_choices() const {
    const Routing routing = run_layer(*layer(), tokens(), kImages, guided()).out.routing;
    return routing.per_token > 0 && routing.token.size(0) < routing.per_token * kTokens;
  }
};

TEST_P(RouterAtItsLimits, NoTokensGiveAnEmptyOutputAndZeroLosses) {
  auto l = layer();
  for (const bool training : {true, false})
    for (const int64_t images : {0, 1, 3}) {
      const ForwardMode mode = training ? ForwardMode::training() : ForwardMode::evaluation();
      const Pass pass = run_layer(*l, torch::empty({0, kWidth}), images, {}, mode);
      EXPECT_EQ(pass.out.tokens.sizes(), (std::vector<int64_t>{0, kWidth}));
      for (const NamedLoss& loss : pass.out.routing.losses) EXPECT_EQ(loss.value.item<double>(), 0) << loss.name;
      for (const auto& [name, value] : pass.all)
        EXPECT_TRUE(value.numel() == 0 || value.abs().max().item<double>() == 0) << name << ", images: " << images;
      if (pass.out.routing.soft) continue;
      expect_consistent(pass.out.routing, kExperts);
      post_step_update(*l, {detached(pass.out.routing)});
    }
  for (const auto& b : l->named_buffers()) EXPECT_TRUE(all_finite(b.value())) << b.key();
}

TEST_P(RouterAtItsLimits, OneExpertTakesEverythingOrIsRefused) {
  const LayerForm form{.router = GetParam(),
                       .experts = 1,
                       .router_settings = {{"k", 1}, {"groups", 1}, {"k_groups", 1}, {"experts_per_token", 1}}};
  if (GetParam() == "gshard_top2") {
    EXPECT_THROW(make_layer(form), UsageError);
    return;
  }
  auto l = make_layer(form);
  RoutingContext pool;
  pool.target = torch::ones({kImages, 1});
  const Pass pass = run_layer(*l, tokens(), kImages, pool);
  expect_finite(pass, GetParam());
  if (!pass.out.routing.soft) {
    expect_consistent(pass.out.routing, 1);
    // Each token once, or at most, where a token may have no expert; patch_choice takes its number of patches.
    const int64_t taken = GetParam() == "patch_choice" ? kImages * 6 : kTokens;
    EXPECT_LE(pass.out.routing.token.size(0), taken);
    if (!skips_choices()) {
      EXPECT_EQ(pass.out.routing.token.size(0), taken);
    }
  }
}

TEST_P(RouterAtItsLimits, MoreChoicesThanThereAreIsAnErrorOfOneLine) {
  std::string key;
  routers().get(GetParam()).describe([&](OptionSet& set) {
    for (const std::string name : {"k", "experts_per_token", "patches"})
      if (set.find(name)) key = name;
  });
  if (key.empty()) GTEST_SKIP() << "chooses by itself";
  const LayerForm form{.router = GetParam(), .router_settings = {{key, 50}}};
  try {
    run_layer(*make_layer(form), tokens(), kImages);
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("50"), std::string::npos) << text;
    EXPECT_NE(text.find("[router]"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST_P(RouterAtItsLimits, TokensThatAreAllTheSame) {
  auto l = layer();
  const Pass pass = run_layer(*l, tokens().narrow(0, 0, 1).expand({kTokens, kWidth}), kImages, guided());
  expect_finite(pass, GetParam());
  if (!pass.out.routing.soft) expect_consistent(pass.out.routing, kExperts);
  const Pass quiet = run_layer(*l, torch::zeros({kTokens, kWidth}), kImages, {}, ForwardMode::evaluation());
  expect_finite(quiet, GetParam());
}

TEST_P(RouterAtItsLimits, NanAndInfinityStayInTheirImageOrLeaveOthersFinite) {
  for (const bool training : {true, false})
    for (const double poison : {kNan, kInf, -kInf}) {
      auto l = layer();
      const ForwardMode mode = training ? ForwardMode::training() : ForwardMode::evaluation();
      at::Tensor x = tokens();
      const Pass clean = run_layer(*l, x, kImages, guided(), mode);
      x = x.clone();
      x[13][2] = poison;  // of image 1
      x[17].fill_(poison);
      const Pass pass = run_layer(*l, x, kImages, guided(), mode);
      const std::string what = cat(GetParam(), training ? " training " : " evaluating ", poison);
      if (!pass.out.routing.soft) expect_consistent(pass.out.routing, kExperts);
      const at::Tensor others = torch::cat({torch::arange(kPerImage), torch::arange(2 * kPerImage, kTokens)});
      const at::Tensor got = pass.out.tokens.detach().index_select(0, others);
      EXPECT_TRUE(all_finite(got)) << what;
      const bool alone = !training || kBatchRouters.count(GetParam()) == 0;
      if (alone && GetParam() != "expert_choice") {
        EXPECT_TRUE(test::near(got, clean.out.tokens.detach().index_select(0, others), 1e-5)) << what;
      }
    }
}

TEST_P(RouterAtItsLimits, StridedAndMisalignedTokensGiveTheSameOutput) {
  auto l = layer();
  const at::Tensor x = tokens();
  ASSERT_FALSE(test::strided(x).is_contiguous());
  const Pass plain = run_layer(*l, x, kImages, guided());
  for (const at::Tensor& other : {test::strided(x), test::misaligned(x)}) {
    const Pass pass = run_layer(*l, other, kImages, guided());
    ASSERT_EQ(pass.all.size(), plain.all.size());
    for (size_t i = 0; i < pass.all.size(); ++i)
      EXPECT_TRUE(test::near(pass.all[i].second, plain.all[i].second, 1e-5)) << pass.all[i].first;
  }
}

TEST_P(RouterAtItsLimits, TokensOfAnotherWidthAreRefusedInWords) {
  auto l = layer();
  for (const int64_t width : {kWidth - 1, kWidth + 1}) {
    const at::Tensor x = torch::zeros({kTokens, width});
    EXPECT_EQ(testing::error_text([&] { run_layer(*l, x, kImages); }),
              cat("the MoE layer moe takes tokens [N, 8], got [40, ", width, "]"));
  }
}

// Weights of another width or number of experts: strict loading raises an Error that names a weight with both shapes
// and changes nothing, loading that may leave things out keeps the router's own weights and says so.
TEST_P(RouterAtItsLimits, WeightsOfAnotherShapeAreRefusedInWords) {
  const auto own = layer();
  if (own->router().parameters().empty()) GTEST_SKIP() << "has no weights";
  for (const LayerForm& form : {LayerForm{.router = GetParam(), .width = 9}, {.router = GetParam(), .experts = 6}}) {
    const auto other = make_layer(form, 2);
    std::vector<at::Tensor> before;
    for (const at::Tensor& p : own->parameters()) before.push_back(p.detach().clone());
    NamedTensors router;  // those of `other` whose shape differs here, under the names in the layer
    for (const auto& p : other->router().named_parameters())
      if (own->router().named_parameters()[p.key()].sizes() != p.value().sizes())
        router.emplace_back("router." + p.key(), p.value());
    ASSERT_FALSE(router.empty());
    LoadOptions strict;
    strict.strict = true;
    const std::string text = testing::error_text([&] { load_weights(*own, named_weights(*other), strict); });
    const auto what = [&](const std::string& name, const at::Tensor& in_file) {
      const at::Tensor mine = *own->named_parameters().find(name);
      return cat(name, " (", in_file.sizes(), " in the file, ", mine.sizes(), " in the model)");
    };
    EXPECT_NE(text.find(what(router[0].first, router[0].second)), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;

    NamedTensors mixed;  // the experts of this layer, the router of the other
    for (const auto& p : own->experts().named_parameters()) mixed.emplace_back("experts." + p.key(), p.value());
    mixed.insert(mixed.end(), router.begin(), router.end());
    const LoadReport report = load_weights(*own, mixed);
    for (const auto& [name, tensor] : router)
      EXPECT_NE(std::find(report.fresh.begin(), report.fresh.end(), what(name, tensor)), report.fresh.end()) << name;
    const auto after = own->parameters();
    for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(after[i], before[i])) << i;
  }
}

TEST_P(RouterAtItsLimits, TokensOfOtherTypesAreAnsweredInTheirType) {
  for (const auto type : {torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    auto l = layer();
    const at::Tensor x = tokens(type);
    const Pass pass = run_layer(*l, x, kImages, guided()), wide = run_layer(*l, x.to(torch::kFloat), kImages, guided());
    EXPECT_EQ(pass.out.tokens.scalar_type(), type);
    expect_finite(pass, cat(GetParam(), " ", type));
    if (!pass.out.routing.soft) {
      EXPECT_TRUE(torch::equal(pass.out.routing.expert, wide.out.routing.expert)) << type;
    }
    EXPECT_TRUE(test::near(pass.out.tokens, wide.out.tokens, type == torch::kDouble ? 1e-4 : 0.05)) << type;
  }
}

// Files have no gradient.
TEST_P(RouterAtItsLimits, S46_AFileOfItsWeightsGivesTheSameOutput) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto l = layer(), other = make_layer({.router = GetParam()}, 2);
    l->to(type);
    other->to(type);
    const Pass pass = run_layer(*l, tokens(type), kImages, guided());
    if (!pass.out.routing.soft) post_step_update(*l, {detached(pass.out.routing)});  // moves biases and thresholds
    const testing::TemporaryFolder folder;
    const std::string file = folder.path("router.safetensors");
    write_safetensors(file, {named_weights(*l), {}});
    LoadOptions strict;
    strict.strict = true;
    load_weights(*other, read_safetensors(file).tensors, strict);
    constexpr ForwardMode kEvaluation = ForwardMode::evaluation();
    const at::Tensor answer = run_layer(*l, tokens(type), kImages, {}, kEvaluation).out.tokens;
    EXPECT_EQ(answer.scalar_type(), type);
    EXPECT_TRUE(torch::equal(answer, run_layer(*other, tokens(type), kImages, {}, kEvaluation).out.tokens)) << type;
    for (const auto& b : l->named_buffers())
      EXPECT_TRUE(torch::equal(b.value(), other->named_buffers()[b.key()])) << b.key();
  }
}

// Enough tokens for every operation to use several threads.
TEST_P(RouterAtItsLimits, WholeLayerHasTheSameBitsForAnyNumberOfThreads) {
  const int64_t many = GetParam() == "base" ? 400 : 8192;  // the assignment of base takes one thread and long
  auto l = make_layer({.router = GetParam(), .experts = 8, .width = 32, .hidden = 64});
  const at::Tensor x = test::random_tensor({many, 32}, 3, torch::kFloat);
  RoutingContext pool;
  pool.target = torch::full({8, 8}, 1.0 / 8);
  expect_same_bits_for_any_number_of_threads([&] { return run_layer(*l, x, 8, pool).all; });
}

INSTANTIATE_TEST_SUITE_P(Registry, RouterAtItsLimits, ::testing::ValuesIn(routers().names()), test_name);

namespace {

// A routing of two choices a token, from logits, noisy logits, noise scales and scores [N,E] and gates [N,2].
Routing make_routing(const std::vector<at::Tensor>& rows, const at::Tensor& valid) {
  Routing r;
  r.tokens = rows[0].size(0), r.experts = kExperts;
  r.layout = {kImages, r.tokens / kImages, 0, 0, 0};
  set_consecutive_groups(r, 2 * r.layout.per_image);
  r.clean_logits = rows[0], r.noisy_logits = rows[1], r.noise_scale = rows[2], r.scores = rows[3];
  r.threshold = torch::full({kExperts}, 0.5, torch::kDouble);
  r.target = torch::softmax(test::random_tensor({kImages, kExperts}, 9), 1);
  choose_per_token(r, top_experts(rows[1].detach(), 2), rows[4]);
  finish_routing(r);
  if (valid.defined()) drop_padding(r, valid);
  return r;
}

}  // namespace

class LossAtItsLimits : public ::testing::TestWithParam<std::string> {
 protected:
  const RoutingLoss& loss() const {
    for (const RoutingLoss& l : routing_losses())
      if (l.name == GetParam()) return l;
    throw std::logic_error(GetParam());
  }
};

// Not even where it is NaN: the loss and its gradients are those of the other rows alone.
TEST_P(LossAtItsLimits, PaddingCountsInNothing) {
  const at::Tensor valid = torch::arange(kTokens, torch::kLong).remainder(kPerImage) < 7;
  const at::Tensor counted = torch::nonzero(valid).squeeze(1), padding = torch::nonzero(valid.logical_not()).squeeze(1);
  const auto random = [](int64_t columns, uint64_t seed) { return test::random_tensor({kTokens, columns}, seed); };
  std::vector<at::Tensor> padded, alone;
  for (const at::Tensor& rows : {random(kExperts, 1), random(kExperts, 2), random(kExperts, 3).exp(),
                                 random(kExperts, 4).sigmoid(), random(2, 5).sigmoid()}) {
    padded.push_back(rows.index_fill(0, padding, kNan).requires_grad_(true));
    alone.push_back(rows.index_select(0, counted).requires_grad_(true));
  }
  LossVariants variants;
  variants.threshold_score_gradient = true;
  const at::Tensor got = loss().value(make_routing(padded, valid), variants);
  const at::Tensor want = loss().value(make_routing(alone, {}), variants);
  ASSERT_TRUE(got.defined() && want.defined());
  EXPECT_TRUE(test::near(got, want, 1e-10));
  got.backward();
  want.backward();
  for (size_t i = 0; i < padded.size(); ++i) {
    const at::Tensor grad = padded[i].grad();
    ASSERT_EQ(grad.defined(), alone[i].grad().defined()) << i;
    if (!grad.defined()) continue;
    EXPECT_TRUE(test::near(grad.index_select(0, counted), alone[i].grad(), 1e-10)) << i;
    EXPECT_TRUE(test::near(grad.index_select(0, padding), torch::zeros({padding.size(0), grad.size(1)}), 0)) << i;
  }
}

TEST_P(LossAtItsLimits, HasTheSameBitsForAnyNumberOfThreads) {
  auto router = routers().make("noisy_topk", Json::object(), "router", RouterShape{8, 8});
  for (auto& p : router->named_parameters()) init_normal(p.value(), 0.5, RandomStream(9, p.key()));
  const at::Tensor x = test::random_tensor({40000, 8}, 3, torch::kFloat);  // sums of more than 32768 numbers
  expect_same_bits_for_any_number_of_threads([&] {
    router->zero_grad();
    Routing routing = router->route({x, {8, 5000, 0, 0, 0}, "moe", ForwardMode::training(), {1, 2}});
    routing.target = torch::full({8, 8}, 1.0 / 8);
    routing.threshold = torch::full({8}, 1.0 / 8);
    const at::Tensor value = loss().value(routing, LossVariants());
    std::vector<std::pair<std::string, at::Tensor>> all{{"value", value.detach()}};
    if (value.requires_grad()) {
      value.backward();
      for (const auto& p : router->named_parameters())
        if (p.value().grad().defined()) all.emplace_back(p.key(), p.value().grad().clone());
    }
    return all;
  });
}

INSTANTIATE_TEST_SUITE_P(Registry, LossAtItsLimits, ::testing::ValuesIn(loss_names()), test_name);

}  // namespace sparsight::limits_test
