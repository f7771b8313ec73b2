#include "sparsight/papers/pmoe/theory/linear_classifier.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "sparsight/core/random.h"
#include "sparsight/papers/pmoe/theory/router_training.h"

namespace sparsight::pmoe::linear_classifier_test {
namespace {

// Patches with so few values that no direction is orthogonal to all irrelevant sets.
PatternModelOptions crowded(int64_t width, int64_t sets) {
  PatternModelOptions options = easy_patterns(1);
  options.width = width;
  options.sets.clear();
  RandomStream random(1, "crowded");
  for (int64_t set = 0; set < sets; ++set) {
    const double first = random.uniform(-0.25, 0.25);
    options.sets.push_back({first, random.uniform(-0.25, 0.25)});
  }
  return options;
}

}  // namespace

// One patch: the sign of x is the class.
TEST(LinearClassifier, SeparatesWhatCanBeSeparated) {
  PatternSamples samples;
  samples.patches = torch::tensor({-1., .2, -2., -.3, 1., .1, 3., 0.}, torch::kDouble).view({4, 1, 2});
  samples.labels = torch::tensor({0, 0, 1, 1}, torch::kLong);
  const LinearClassifier found = train_linear(samples);
  EXPECT_EQ(found.training_error, 0);
  EXPECT_GT(found.weight[0].item<double>(), 1);
}

// With more samples than n d weights and sets in all directions no linear classifier fits them, while routing alone
// separates the classes.
TEST(LinearClassifier, P74_FailsWhereRoutingSucceeds) {
  const PatternModel model(crowded(8, 32));
  const PatternSamples samples = model.sample("train", 1200);
  EXPECT_GT(train_linear(samples).training_error, 0.02);
  EXPECT_GT(routed_share(pattern_ranks(model.sample("test", 500), train_routers(samples, {})), 4), 0.98);
}

}  // namespace sparsight::pmoe::linear_classifier_test
