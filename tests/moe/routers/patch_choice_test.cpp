#include "sparsight/moe/routers/patch_choice.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "tests/moe/routers/token_batch.h"
#include "tests/moe/shazeer_example.h"
#include "tests/support/gradcheck.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::patch_choice_test {
namespace {

using test::dense_gates;
using test::near;
using test::table;

PatchChoiceOptions make_options(int64_t patches, const std::string& gate) {
  PatchChoiceOptions options;
  options.patches = patches;
  options.gate = gate;
  return options;
}

// Two images of three patches, two experts. Logits are logarithms, so that softmaxes are ratios of whole numbers:
//   image 0: expert 0 sees 1 2 4, expert 1 sees 3 3 1
//   image 1: expert 0 sees 5 1 1, expert 1 sees 1 2 1
at::Tensor example() { return table({{1, 3}, {2, 3}, {4, 1}, {5, 1}, {1, 2}, {1, 1}}).log(); }

}  // namespace

class PatchChoice : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(PatchChoice, P3_P4_TheThreeGatesOnTheTwoBestPatchesOfEachImage) {
  const double tol = GetParam() == torch::kDouble ? 1e-12 : 1e-6;
  const at::Tensor clean = example().to(GetParam());
  const Routing r = route_patch_choice(clean, {}, 2, make_options(2, "topl_softmax"));
  // By expert, image and rank; ties go to the lower patch.
  EXPECT_TRUE(torch::equal(r.token, torch::tensor({2, 1, 3, 4, 0, 1, 4, 3}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.expert, torch::tensor({0, 0, 0, 0, 1, 1, 1, 1}, torch::kLong)));
  EXPECT_TRUE(torch::equal(r.rank, torch::tensor({0, 1, 0, 1, 0, 1, 0, 1}, torch::kLong)));
  EXPECT_TRUE(near(dense_gates(r),
                   table({{0, 1. / 2}, {1. / 3, 1. / 2}, {2. / 3, 0}, {5. / 6, 1. / 3}, {1. / 6, 2. / 3}, {0, 0}}),
                   tol));
  const Routing all = route_patch_choice(clean, {}, 2, make_options(2, "softmax_topl"));
  EXPECT_TRUE(near(dense_gates(all),
                   table({{0, 3. / 7}, {2. / 7, 3. / 7}, {4. / 7, 0}, {5. / 7, 1. / 4}, {1. / 7, 1. / 2}, {0, 0}}),
                   tol));
  const Routing ones = route_patch_choice(clean, {}, 2, make_options(2, "ones"));
  EXPECT_TRUE(near(dense_gates(ones), table({{0, 1}, {1, 1}, {1, 0}, {1, 1}, {1, 1}, {0, 0}}), 0));
  EXPECT_EQ(ones.gate.scalar_type(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Types, PatchChoice, ::testing::Values(torch::kFloat, torch::kDouble));

TEST(PatchChoiceRouter, P3_ExactlyLDistinctPatchesOfEachImageForEveryL) {
  const at::Tensor clean = test::random_tensor({5 * 9, 3}, 1);
  for (int64_t l = 1; l <= 9; ++l) {
    const Routing r = route_patch_choice(clean, {}, 5, make_options(l, "topl_softmax"));
    const at::Tensor cell = r.expert * 5 + r.token.floor_divide(9);
    EXPECT_TRUE(torch::equal(torch::bincount(cell, {}, 15), torch::full({15}, l, torch::kLong)));
    EXPECT_EQ(std::get<0>(at::_unique(r.token * 3 + r.expert)).size(0), 15 * l);
    const at::Tensor sums = torch::zeros({15}, torch::kDouble).index_add(0, cell, r.gate);
    EXPECT_TRUE(near(sums, torch::ones({15}), 1e-12));
    const Routing cut = route_patch_choice(clean, {}, 5, make_options(l, "softmax_topl"));
    const at::Tensor below = torch::zeros({15}, torch::kDouble).index_add(0, cell, cut.gate);
    if (l == 9)
      EXPECT_TRUE(near(below, torch::ones({15}), 1e-12));
    else
      EXPECT_TRUE((below < 1).all().item<bool>());
  }
}

// Patches from 1, as the figures number them, with two of six for each expert.
std::vector<std::set<int64_t>> patches_of_experts(const std::vector<std::set<int64_t>>& best) {
  const auto experts = static_cast<int64_t>(best.size());
  at::Tensor clean = test::random_tensor({6, experts}, 1).clamp(-1, 1);
  for (int64_t e = 0; e < experts; ++e)
    for (const int64_t patch : best[e]) clean[patch - 1][e] += 3;
  const Routing r = route_patch_choice(clean, {}, 1, make_options(2, "ones"));
  std::vector<std::set<int64_t>> taken(experts);
  for (int64_t i = 0; i < r.token.size(0); ++i)
    taken[r.expert[i].item<int64_t>()].insert(r.token[i].item<int64_t>() + 1);
  return taken;
}

// Figure 2: three experts share all patches out. Figure 19: of four experts, two take patch 3 and two patch 6. Experts
// may also leave patches unused.
TEST(PatchChoiceRouter, P3_FiguresTwoAndNineteen) {
  for (const std::vector<std::set<int64_t>>& figure :
       {std::vector<std::set<int64_t>>{{2, 6}, {3, 4}, {1, 5}}, {{2, 6}, {3, 4}, {1, 5}, {3, 6}}, {{2, 6}, {2, 6}}})
    EXPECT_EQ(patches_of_experts(figure), figure);
}

TEST(PatchChoiceRouter, P4_GatesAreStableForLargeScores) {
  const at::Tensor clean = (test::random_tensor({8, 2}, 1, torch::kFloat).sign() * 1e4f).requires_grad_(true);
  for (const std::string gate : {"topl_softmax", "softmax_topl"}) {
    clean.mutable_grad() = at::Tensor();
    const Routing r = route_patch_choice(clean, {}, 2, make_options(2, gate));
    r.gate.square().sum().backward();
    EXPECT_TRUE(torch::isfinite(r.gate).all().item<bool>() && torch::isfinite(clean.grad()).all().item<bool>());
  }
}

TEST(PatchChoiceRouter, P14_GatesHaveTheRightGradients) {
  at::Tensor clean = test::random_tensor({10, 3}, 1);
  const at::Tensor upstream = test::random_tensor({12}, 4);
  for (const std::string gate : {"topl_softmax", "softmax_topl"}) {
    const auto loss = [&] { return (route_patch_choice(clean, {}, 2, make_options(2, gate)).gate * upstream).sum(); };
    EXPECT_LT(test::gradient_error(loss, {clean}), 1e-8);
    const Routing r = route_patch_choice(clean, {}, 2, make_options(2, gate));
    const at::Tensor dropped = (dense_gates(r) == 0).to(torch::kDouble) * clean.grad();
    // Only the softmax over all patches reaches those that were not taken.
    EXPECT_EQ(dropped.abs().max().item<double>() > 0, gate == "softmax_topl");
  }
}

TEST(PatchChoiceRouter, PaddingIsNoPatch) {
  at::Tensor clean = example();
  clean[2].fill_(NAN);
  const at::Tensor valid = torch::tensor({true, true, false, false, false, false});
  for (const std::string gate : {"topl_softmax", "softmax_topl"}) {
    const Routing r = route_patch_choice(clean, valid, 2, make_options(3, gate));
    EXPECT_TRUE(torch::equal(r.token, torch::tensor({1, 0, 0, 1}, torch::kLong)));
    EXPECT_TRUE(near(r.gate, torch::tensor({2. / 3, 1. / 3, 0.5, 0.5}, torch::kDouble), 1e-12));
  }
}

TEST(PatchChoiceRouter, AClassTokenIsNoPatch) {
  PatchChoiceRouter router(make_options(2, "softmax_topl"), {2, 2});
  {
    const at::NoGradGuard no_grad;
    router.weight.copy_(test::random_tensor({2, 2}, 2, torch::kFloat));
  }
  const TokenLayout layout{.images = 2, .per_image = 4, .prefix = 1};
  at::Tensor tokens = test::random_tensor({8, 2}, 1, torch::kFloat).view({2, 4, 2});
  tokens.select(1, 0).fill_(100);  // would win at every expert
  const Routing r = router.route({tokens.view({8, 2}), layout, "moe", ForwardMode::training(), {1, 2}});
  EXPECT_EQ(r.token.numel(), 2 * 2 * 2);
  EXPECT_TRUE((r.token.remainder(4) != 0).all().item<bool>()) << r.token;
  EXPECT_TRUE((r.scores.view({2, 4, 2}).select(1, 0) == 0).all().item<bool>());
  // Also where an image has no patch but padding.
  RouterInput padded{tokens.view({8, 2}), layout, "moe", ForwardMode::training(), {1, 2}};
  padded.context.valid = torch::tensor({true, false, false, false, true, true, true, true});
  EXPECT_TRUE((router.route(padded).scores.view({2, 4, 2}).select(1, 0) == 0).all().item<bool>());
  const Routing patches = router.route(
      {tokens.narrow(1, 1, 3).reshape({6, 2}), {.images = 2, .per_image = 3}, "moe", ForwardMode::training(), {1, 2}});
  EXPECT_TRUE(near(r.gate, patches.gate, 0));
}

TEST(PatchChoiceRouter, MorePatchesThanAnImageHasIsAnError) {
  PatchChoiceRouter router(make_options(4, "ones"), {2, 2});
  EXPECT_THROW(router.route({torch::zeros({6, 2}), {2, 3, 0, 0, 0}, "moe", ForwardMode::training(), {1, 2}}),
               UsageError);
}

}  // namespace sparsight::patch_choice_test
