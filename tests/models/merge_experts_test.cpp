#include "sparsight/models/merge_experts.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sparsight/io/weights.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/nn/init.h"
#include "tests/support/near.h"
#include "tests/support/random_tensor.h"

namespace sparsight::merge_experts_test {
namespace {

at::Tensor randoms(at::IntArrayRef sizes, uint64_t seed) { return test::random_tensor(sizes, seed, torch::kDouble); }

// By hand: outputs (3,4), (6,8) and (-4,3) have cosines 1, 0 and 0; an expert that is always 0 has 0.
TEST(MergeExperts, SimilarityIsTheCosineOfAllOutputs) {
  const at::Tensor outputs = at::tensor({3.0, 4.0, 6.0, 8.0, -4.0, 3.0, 0.0, 0.0}, torch::kDouble).view({4, 2, 1});
  const at::Tensor expected =
      at::tensor({1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0}, torch::kDouble);
  EXPECT_TRUE(test::near(output_similarity(outputs), expected.view({4, 4}), 1e-12));
}

TEST(MergeExperts, ThoseThatLeaveGoToTheMostSimilarThatStays) {
  const at::Tensor similarity =
      at::tensor({1.0, 0.9, 0.2, 0.1, 0.9, 1.0, 0.3, 0.3, 0.2, 0.3, 1.0, -0.5, 0.1, 0.3, -0.5, 1.0}, torch::kDouble)
          .view({4, 4});
  EXPECT_EQ(nearest_kept(similarity, {true, false, true, false}), (std::vector<int64_t>{0, 0, 2, 0}));
  EXPECT_EQ(nearest_kept(similarity, {false, true, false, false}), (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_THROW(nearest_kept(similarity, {false, false, false, false}), std::logic_error);
}

// Inner products by hand: reference 0 with other 1 is 4, reference 1 with other 2 is 9, reference 2 with other 0 is 1;
// all others are 0.
TEST(MergeExperts, UnitsAreMatchedByTheirWeights) {
  const at::Tensor reference = at::tensor({2.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0}, torch::kDouble).view({3, 3}),
                   other = at::tensor({0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 3.0, 0.0}, torch::kDouble).view({3, 3});
  EXPECT_TRUE(at::equal(match_units(reference, other), at::tensor({1, 2, 0}, torch::kLong)));
}

// The greedy choice, 10 first, sums up to 10 + 0; the best assignment to 9 + 8.
TEST(MergeExperts, MatchingIsNotGreedy) {
  const at::Tensor reference = at::tensor({1.0, 0.0, 0.0, 1.0}, torch::kDouble).view({2, 2}),
                   other = at::tensor({10.0, 8.0, 9.0, 0.0}, torch::kDouble).view({2, 2});
  EXPECT_TRUE(at::equal(match_units(reference, other), at::tensor({1, 0}, torch::kLong)));
}

// (1 * 1 + 3 * 5) / 4 = 4.
TEST(MergeExperts, TheMeanIsWeighted) {
  const at::Tensor a = at::tensor({1.0F, 0.1F}), b = at::tensor({5.0F, 0.1F});
  EXPECT_TRUE(test::near(weighted_mean({a, b}, {1, 3}), at::tensor({4.0F, 0.1F}), 1e-6));
  EXPECT_TRUE(at::equal(weighted_mean({a, b}, {0, 3}), b));
  EXPECT_EQ(weighted_mean({a, b}, {1, 3}).scalar_type(), at::kFloat);
  EXPECT_THROW(weighted_mean({a, b}, {0, 0}), std::logic_error);
  EXPECT_THROW(weighted_mean({a, b}, {-1, 2}), std::logic_error);
}

struct MergedKind {
  std::string kind;
  Json settings;
};

// Every kind with hidden units: expert 1 is expert 0 with its units in another order. Put back into order, all of its
// tensors are those of expert 0, and so is what it computes.
TEST(MergeExperts, FindsTheOrderOfExchangedUnits) {
  for (const auto& [kind, settings] : std::vector<MergedKind>{{"mlp", {}},
                                                              {"mlp", {{"depth", 3}}},
                                                              {"mlp", {{"bias", false}}},
                                                              {"swiglu", {{"bias", true}}},
                                                              {"swiglu", {}},
                                                              {"conv", {{"channels", 2}, {"kernel", 2}}}}) {
    const int64_t hidden_units = 7;
    const auto experts = expert_kinds().make(kind, settings.is_null() ? Json::object() : settings, "experts",
                                             ExpertShape{2, 32, hidden_units, 0});
    const torch::NoGradGuard no_grad;
    experts->to(torch::kDouble);
    const std::vector<HiddenUnits> hidden = experts->expert_tensors().hidden;
    ASSERT_FALSE(hidden.empty()) << kind;
    UnitOrder shuffled, back;
    for (size_t i = 0; i < hidden.size(); ++i) {
      shuffled.push_back(randoms({hidden_units}, 40 + i).argsort());
      back.push_back(shuffled.back().argsort());  // the inverse
    }
    uint64_t seed = 1;
    ExpertParameters all;
    for (const auto& [name, tensor] : named_weights(*experts)) {
      const at::Tensor first = randoms(tensor.sizes().slice(1), seed++);
      tensor.select(0, 0).copy_(first);
      tensor.select(0, 1).copy_(reorder_units(first, name, hidden, shuffled));
      all[name] = tensor;
    }
    const at::Tensor rows = randoms({10, 32}, 99);
    const auto outputs = [&] {
      return experts->forward(rows.repeat({2, 1}), at::tensor({0, 10, 20}, torch::kLong)).view({2, 10, -1});
    };
    EXPECT_TRUE(test::near(outputs()[0], outputs()[1], 1e-10)) << kind;  // the units may be exchanged
    const UnitOrder found = match_hidden_units(all, hidden, 0, 1);
    for (size_t i = 0; i < hidden.size(); ++i) EXPECT_TRUE(at::equal(found[i], back[i])) << kind << " layer " << i;
    for (const auto& [name, tensor] : all)
      EXPECT_TRUE(at::equal(reorder_units(tensor[1], name, hidden, found), tensor[0])) << kind << " " << name;
  }
}

TEST(MergeExperts, UnitsOfEqualExpertsStayInPlace) {
  const std::vector<HiddenUnits> hidden{{{{"w1", 2}, {"w2", 1}}}};
  const at::Tensor w1 = randoms({1, 4, 6}, 1).repeat({2, 1, 1}), w2 = randoms({1, 6, 4}, 2).repeat({2, 1, 1});
  EXPECT_TRUE(at::equal(match_hidden_units({{"w1", w1}, {"w2", w2}}, hidden, 0, 1)[0], at::arange(6, torch::kLong)));
}

}  // namespace
}  // namespace sparsight::merge_experts_test
