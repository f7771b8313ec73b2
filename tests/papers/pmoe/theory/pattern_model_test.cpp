#include <gtest/gtest.h>

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/theory/pattern_model.h"
#include "tests/support/errors.h"

namespace sparsight::pmoe::pattern_model_test {

using testing::error_text;

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

PatternModelOptions three_classes() {
  PatternModelOptions options;
  options.classes = 3;
  options.separation = -0.3;
  options.relevance = 0.3;
  options.sets = {{0.3, -0.2, 0.1}, {0, 0.1, -0.3}};
  return options;
}

void expect_close(const at::Tensor& a, const at::Tensor& b, double tolerance = 1e-12) {
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance);
}

// P33, P35
TEST(PatternModel, P33_P35_SamplesMeetEveryConstraint) {
  for (const PatternModelOptions& options : {easy_patterns(3), hard_patterns(3), three_classes()}) {
    const PatternModel model(options);
    const int64_t c = options.classes, n = options.patches;
    at::Tensor gram = torch::full({c, c}, options.separation, torch::kDouble);
    gram.fill_diagonal_(1);
    expect_close(model.patterns().matmul(model.patterns().t()), gram);

    const PatternSamples samples = model.sample("train", 300);
    expect_close(samples.patches.norm(2, 2), torch::ones({300, n}, torch::kDouble));
    const at::Tensor products = samples.patches.matmul(model.patterns().t());  // [N,n,c]
    for (int64_t i = 0; i < 300; ++i) {
      EXPECT_EQ(samples.labels[i].item<int64_t>(), i % c);
      EXPECT_EQ((samples.set[i] < 0).sum().item<int64_t>(), 1);
      const auto position = samples.position[i].item<int64_t>();
      EXPECT_EQ(samples.set[i][position].item<int64_t>(), -1);
      expect_close(samples.patches[i][position], model.patterns()[i % c]);
      for (int64_t j = 0; j < n; ++j) {
        if (j == position) continue;
        const auto& wanted = options.sets[static_cast<size_t>(samples.set[i][j].item<int64_t>())];
        expect_close(products[i][j], torch::tensor(wanted, torch::kDouble));
      }
    }
    for (int64_t set = 0; set < std::ssize(options.sets); ++set) {
      const at::Tensor members = samples.patches.index({samples.set == set});
      ASSERT_GT(members.size(0), 2);
      const double widest = torch::cdist(members, members).max().item<double>();
      EXPECT_LE(widest, model.largest_diameter() + 1e-9);
      EXPECT_GT(widest, model.largest_diameter() / 10);  // and they are not all the same
    }
  }
}

// The sets of irrelevant patches are equally frequent in both classes: 4500 samples each, standard deviation of a
// fraction of 1/8 below 0.005.
TEST(PatternModel, P33_IrrelevantPatchesTellNothingOfTheLabel) {
  const PatternSamples samples = PatternModel(easy_patterns(5)).sample("train", 600);
  for (int64_t set = 0; set < 8; ++set) {
    const at::Tensor share = (samples.set == set).to(torch::kDouble).mean(1) * 16 / 15;
    const at::Tensor first = samples.labels == 0;
    EXPECT_NEAR(share.index({first}).mean().item<double>(), 0.125, 0.025);
    EXPECT_NEAR(share.index({first.logical_not()}).mean().item<double>(), 0.125, 0.025);
  }
}

// 1 / (1 - 0.25²) and 1 / (1 - 0.5²).
TEST(PatternModel, P34_ProfilesNeedOneAndSixPatches) {
  const PatternModel easy(easy_patterns(1)), hard(hard_patterns(1));
  EXPECT_EQ(needed_patches(easy.sample("train", 200), easy.patterns(), 0), 1);
  EXPECT_EQ(needed_patches(hard.sample("train", 200), hard.patterns(), 0.5), 6);
  EXPECT_NEAR(easy.delta(), 1.0667, 1e-4);
  EXPECT_NEAR(hard.delta(), 1.3333, 1e-4);
}

TEST(PatternModel, SamplesAreFunctionsOfSeedPartAndNumber) {
  const PatternModel model(easy_patterns(7)), other(easy_patterns(8));
  const at::Tensor few = model.sample("train", 3).patches;
  EXPECT_TRUE(few.equal(model.sample("train", 9).patches.narrow(0, 0, 3)));
  EXPECT_FALSE(few.equal(model.sample("test", 3).patches));
  EXPECT_FALSE(few.equal(other.sample("train", 3).patches));
}

// |A|² = (c1² - 2 delta_d c1 c2 + c2²) / (1 - delta_d²) = 4 * 0.81 / 1.9 > 1 for (0.9, -0.9) and delta_d = 0.9.
TEST(PatternModel, P36_WhatNoVectorsCanMeetIsRefused) {
  const auto message = [](const auto& change) {
    PatternModelOptions options = easy_patterns(0);
    change(options);
    return error_text([&] { PatternModel model(options); });
  };
  EXPECT_TRUE(says(message([](auto& o) {
                     o.separation = 0.9, o.relevance = 0.95, o.sets = {{0.9, -0.9}};
                   }),
                   "no unit vector has these inner products"));
  EXPECT_TRUE(says(message([](auto& o) { o.separation = 1; }), "have inner products of 1"));
  EXPECT_TRUE(says(message([](auto& o) { o.classes = 3, o.separation = -0.6; }), "above -0.5"));
  EXPECT_TRUE(says(message([](auto& o) { o.relevance = 0.1; }), "larger than delta_r = 0.1"));
  EXPECT_TRUE(says(message([](auto& o) { o.width = 3; }), "a width of at least 4, got 3"));
  EXPECT_TRUE(says(message([](auto& o) { o.confuser_sets = 1, o.confusers = 16; }), "do not fit beside the pattern"));
  EXPECT_TRUE(says(message([](auto& o) { o.confuser_sets = 8, o.confusers = 2; }), "have no set to be sampled from"));
  EXPECT_TRUE(says(message([](auto& o) { o.confusers = 2; }), "confusers need sets"));
}

}  // namespace sparsight::pmoe::pattern_model_test
