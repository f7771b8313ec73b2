// Every training algorithm, by name: it trains, can be stopped and resumed with the same bits, and leaves a model that
// predicts.
#include <filesystem>

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/config.h"
#include "sparsight/core/toml.h"
#include "sparsight/infer/evaluate_run.h"
#include "sparsight/infer/predict.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trained_predictor.h"
#include "sparsight/train/trainer.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::algorithms_registry_test {
namespace {

Json config(const std::string& algorithm) {
  Config config = Config::from_text(testing::kTinyConfig, "test");
  for (const char* setting : {"data.domains=[\"clean\",\"sketch\"]", "data.train=128", "data.validation=32",
                              "data.test=32", "loader.batch=16", "loader.per_domain=true", "train.max_steps=6",
                              "train.eval_every=3"})  // also where training stops in between
    config.set(setting);
  config.set("algorithm.name=" + algorithm);
  return resolve(config, config_sections());
}

// Trains up to `steps` in the run folder, from its current step.
Checkpoint train_to(int64_t steps, const std::string& algorithm, const std::string& path) {
  const Json resolved = config(algorithm);
  const bool begun = std::filesystem::exists(path + "/config.toml");
  TrainingSetup setup = make_training_setup(resolved, !begun);
  setup.length.total_steps = steps;  // the schedule's length is unchanged
  RunFolder folder = RunFolder::create(path, begun ? IfExists::kResume : IfExists::kRefuse);
  write_file_atomically(folder.config(), to_toml(resolved));
  Trainer trainer(std::move(setup), std::move(folder));
  trainer.resume();
  EXPECT_EQ(trainer.run(), TrainingEnd::finished);
  return read_checkpoint(path + "/checkpoints/last.safetensors");
}

void expect_equal(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

bool differ(const NamedTensors& a, const NamedTensors& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (!at::equal(a[i].second, b[i].second)) return true;
  return false;
}

double evaluated(const std::string& run, const std::string& checkpoint, const std::string& split) {
  EvaluateRunOptions options;
  options.path = run, options.checkpoint = checkpoint, options.split = split;
  return evaluate_run(options, trained_predictor).at("loss").get<double>();
}

// What the run itself found last.
double found_by_the_run(const std::string& run, const std::string& split) {
  double loss = 0;
  for (const Json& line : read_metrics(run + "/metrics.jsonl"))
    if (line["kind"] == "eval" && line["split"] == split) loss = line.at("loss").get<double>();
  return loss;
}

TEST(EveryAlgorithm, IsResumedWithTheSameBitsAndLeavesAModelThatPredicts) {
  for (const std::string& name : algorithms().names()) {
    SCOPED_TRACE(name);
    const testing::TemporaryFolder folder;
    const Checkpoint whole = train_to(6, name, folder.path("whole"));
    const Checkpoint early = train_to(3, name, folder.path("parts"));
    EXPECT_TRUE(differ(early.weights, whole.weights));  // it trains
    const Checkpoint parts = train_to(6, name, folder.path("parts"));
    expect_equal(parts.weights, whole.weights);
    expect_equal(parts.training, whole.training);
    EXPECT_EQ(parts.state["algorithm"], whole.state["algorithm"]);
    const LoadedModel loaded = load_model(folder.path("parts"));
    EXPECT_EQ(algorithms().facts(name).predicts,
              !tensors_under(kPredictionTensors, read_checkpoint(loaded.path).training).empty());
    EXPECT_NEAR(evaluated(folder.path("parts"), "best", "test"), found_by_the_run(folder.path("parts"), "test"), 1e-6);
    if (algorithms().facts(name).predicts) {
      EXPECT_NEAR(evaluated(folder.path("parts"), "last", "val"), found_by_the_run(folder.path("parts"), "val"), 1e-6);
    }
    EXPECT_EQ(predict(loaded, at::zeros({loaded.data.channels, 16, 16}, at::kByte), "blank", 2).classes.size(), 2u);
  }
}

}  // namespace
}  // namespace sparsight::algorithms_registry_test
