#include "sparsight/train/algorithm_context.h"

#include <set>

#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/convnext.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/training_setup.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/errors.h"

namespace sparsight::algorithm_context_test {
namespace {

AlgorithmContext context() {
  const Json config = resolve(Config::from_text(testing::kTinyConfig, "test"), config_sections());
  const TrainingSetup setup = make_training_setup(config, /*fresh=*/true);
  return {config, setup.run, setup.train, setup.data, {}, setup.model};
}

TEST(CopyOfModel, HasTheSameValuesInOtherMemory) {
  const AlgorithmContext given = context();
  const auto copy = copy_of_model(given);
  const NamedTensors a = named_weights(*given.model), b = named_weights(*copy);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second));
    EXPECT_NE(a[i].second.data_ptr(), b[i].second.data_ptr());
  }
}

TEST(TrainableParameters, LeaveOutWhatIsFrozenAndKnowTheirGroups) {
  const AlgorithmContext given = context();
  TrainOptions options;
  const size_t all = trainable_parameters(*given.model, options).size();
  options.freeze = {"blocks.0"};
  options.param_groups = Json::parse(R"([{"parameters": ["router"], "lr_factor": 0.1, "weight_decay": 0}])");
  size_t routers = 0;
  const std::vector<OptimizedParameter> parameters = trainable_parameters(*given.model, options);
  EXPECT_LT(parameters.size(), all);
  for (const OptimizedParameter& parameter : parameters) {
    EXPECT_FALSE(parameter.name.starts_with("blocks.0"));
    const bool router = parameter.name.find(".router.") != std::string::npos;
    routers += router;
    EXPECT_EQ(parameter.lr_factor, router ? 0.1 : 1.0) << parameter.name;
    EXPECT_EQ(parameter.weight_decay.has_value(), router);
  }
  EXPECT_GT(routers, 0u);
  options.freeze = {"blokcs"};
  EXPECT_NE(testing::error_text<UsageError>([&] {
              trainable_parameters(*given.model, options);
            }).find("did you mean \"blocks\"?"),
            std::string::npos);
}

// Two norms of ConvNeXt have names without "norm".
TEST(TrainableParameters, LayerNormsDoNotDecayWhateverTheirNames) {
  const ConvNext model({.depths = {1, 1}, .widths = {8, 16}}, ModelContext{{3, 16, 16, 2}, default_moe_spec()});
  const auto decaying = [&](const std::vector<std::string>& no_decay) {
    TrainOptions options;
    options.no_decay = no_decay;
    std::set<std::string> names;
    for (const OptimizedParameter& parameter : trainable_parameters(model, options))
      if (parameter.decay) names.insert(parameter.name);
    return names;
  };
  const std::set<std::string> by_default = decaying(TrainOptions{}.no_decay), all = decaying({});
  for (const char* name : {"stem.0.weight", "stages.1.downsample.1.weight", "head.fc.weight"})
    EXPECT_TRUE(by_default.contains(name)) << name;
  for (const char* name : {"stem.1.weight", "stages.1.downsample.0.weight", "head.norm.weight"}) {
    EXPECT_FALSE(by_default.contains(name)) << name;
    EXPECT_TRUE(all.contains(name)) << name;
  }
}

}  // namespace
}  // namespace sparsight::algorithm_context_test
