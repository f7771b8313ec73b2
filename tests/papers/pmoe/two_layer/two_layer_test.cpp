// The presets' constants, and training on the theory's data against the specification's order-of-magnitude runs.
#include "sparsight/papers/pmoe/two_layer/two_layer.h"

#include <gtest/gtest.h>

#include <ATen/Parallel.h>

#include "sparsight/papers/pmoe/theory/pattern_model.h"
#include "tests/support/errors.h"

namespace sparsight::pmoe::two_layer_test {

PatchSet composite_shape() {
  PatchSet set;
  set.table = torch::zeros({16, 784});
  set.labels = torch::zeros({1}, torch::kLong);
  set.patches = 16;
  set.classes = 2;
  return set;
}

// Table of presets: 1/sqrt(40) = 0.158; 1 / (256 ln 16 * 28) = 5.03e-5.
TEST(TwoLayer, P20_PresetsAreThoseOfThePaperAndOfItsCode) {
  const PatchSet data = composite_shape();
  for (const char* form : {"cnn", "separate", "joint"}) {
    const TwoLayerSetting paper = two_layer_preset("paper", form, data);
    EXPECT_EQ(paper.experts * paper.filters, 40);
    EXPECT_NEAR(paper.init_std, 0.158, 5e-4);
    EXPECT_NEAR(paper.router_std, 5.03e-5, 5e-8);
    EXPECT_EQ(paper.average, "taken");
    EXPECT_EQ(paper.output, "normal");
    EXPECT_EQ(paper.sgd.stop, "zero_error");
    EXPECT_EQ(paper.threshold, 0);
    const TwoLayerSetting code = two_layer_preset("code", form, data);
    EXPECT_EQ(code.average, "all");
    EXPECT_EQ(code.sgd.stop, "epochs");
    EXPECT_EQ(code.threshold, 0.5);
    for (const TwoLayerSetting& setting : {paper, code}) {
      EXPECT_EQ(setting.sgd.lr, 0.2);
      EXPECT_EQ(setting.sgd.batch, 20);
      EXPECT_EQ(setting.sgd.epochs, 150);
      EXPECT_EQ(setting.sgd.router_epochs, 100);
    }
  }
  EXPECT_EQ(two_layer_preset("code", "cnn", data).filters, 4);
  EXPECT_EQ(two_layer_preset("code", "separate", data).output, "signs");
  EXPECT_EQ(two_layer_preset("code", "separate", data).router_std, 0.1);
  EXPECT_EQ(two_layer_preset("code", "joint", data).init_std, 0.01);
  EXPECT_EQ(two_layer_preset("code", "joint", data).router_std, 1e-4);
}

TEST(TwoLayer, P19_InitialValuesHaveTheirDeviation) {
  const PatchSet data = composite_shape();
  for (const char* preset : {"paper", "code"})
    for (const char* form : {"cnn", "separate", "joint"}) {
      const TwoLayerSetting setting = two_layer_preset(preset, form, data);
      const auto model = make_two_layer(setting, data, {1, 2});
      const PatchCnnParts parts = model->parts();
      // At least 4 * 784 samples: 2 % is 1.6 of their deviation's standard deviations there, 5 with 40 filters.
      EXPECT_NEAR(parts.experts->w1.std().item<double>() / setting.init_std, 1, setting.filters == 4 ? 0.05 : 0.02);
      if (parts.router) {
        EXPECT_NEAR(parts.router->weight.std().item<double>() / setting.router_std, 1, 0.06);
      }
      const at::Tensor w2 = parts.experts->w2;
      if (setting.output == "signs") {
        EXPECT_TRUE((w2[0] == -1).all().item<bool>());
        EXPECT_TRUE((w2[1] == 1).all().item<bool>());
      } else {
        EXPECT_FALSE((w2.abs() == 1).any().item<bool>());
      }
    }
}

struct Trial {
  double accuracy = 0;
  std::vector<PatchEpoch> epochs;
};

// The EASY profile, learning rate 1, as in the specification's reference runs.
Trial easy(const std::string& form, int64_t count, int64_t taken, uint64_t seed) {
  const PatternModel model(easy_patterns(seed));
  const PatchSet train = patch_set(model.sample("train", count), 2), test = patch_set(model.sample("test", 1000), 2);
  TwoLayerSetting setting = two_layer_preset("paper", form, train);
  if (form != "cnn") setting.patches = taken;
  setting.sgd.lr = setting.sgd.router_lr = 1;
  const TwoLayerResult result = train_two_layer(setting, train, test, {seed, seed});
  return {result.accuracy, result.epochs};
}

TEST(TwoLayer, P17_ReachesWhatIndependentRunsReached) {
  double separate = 0, wide = 0, cnn = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    separate += easy("separate", 80, 1, seed).accuracy / 4;
    wide += easy("separate", 80, 8, seed).accuracy / 4;
    cnn += easy("cnn", 80, 16, seed).accuracy / 4;
  }
  EXPECT_GT(separate, 0.99);       // 100 %
  EXPECT_NEAR(wide, 0.953, 0.04);  // 95.3 %
  EXPECT_NEAR(cnn, 0.965, 0.04);   // 96.5 %
}

TEST(TwoLayer, P21_StopsWithTheFirstEpochWithoutAnErrorOrAfterAll) {
  const Trial trial = easy("separate", 80, 1, 0);
  EXPECT_LT(trial.epochs.size(), 20U);
  EXPECT_EQ(trial.epochs.back().wrong, 0);
  const PatternModel model(easy_patterns(0));
  const PatchSet train = patch_set(model.sample("train", 40), 2);
  TwoLayerSetting setting = two_layer_preset("paper", "joint", train);
  setting.sgd.stop = "epochs";
  setting.sgd.epochs = 1;  // one pass, T = N / B steps
  EXPECT_EQ(train_two_layer(setting, train, train, {}).epochs.size(), 1U);
}

TEST(TwoLayer, P23_GivesTheSameBitsAgainAndForAnyNumberOfThreads) {
  std::vector<double> losses;
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 4, 1}) {
    at::set_num_threads(threads);
    losses.push_back(easy("joint", 60, 3, 5).epochs.back().loss);
  }
  at::set_num_threads(before);
  for (const double loss : losses) EXPECT_EQ(loss, losses[0]);
}

TEST(TwoLayer, P79_SizesThatDoNotFitAreErrors) {
  const PatchSet data = composite_shape();
  TwoLayerSetting setting = two_layer_preset("paper", "joint", data);
  setting.patches = 17;
  EXPECT_NE(
      testing::error_text([&] { make_two_layer(setting, data, {}); }).find("takes 17 patches but a sample has 16"),
      std::string::npos);
}

}  // namespace sparsight::pmoe::two_layer_test
