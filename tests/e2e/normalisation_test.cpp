// Normalisation as part of the model, through the program: what is saved, runs of versions that saved none, and
// configurations that cannot be.
#include <cmath>
#include <filesystem>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::normalisation_test {
namespace {

namespace fs = std::filesystem;

bool is_statistic(const std::string& name) {
  return name.ends_with("normalize.mean") || name.ends_with("normalize.std");
}

// The checkpoints as earlier versions wrote them, whose data pipeline normalised.
void forget_statistics(const std::string& run) {
  for (const char* name : {"/checkpoints/last.safetensors", "/checkpoints/best.safetensors"}) {
    Checkpoint checkpoint = read_checkpoint(run + name);
    const size_t all = checkpoint.weights.size();
    for (NamedTensors* tensors : {&checkpoint.weights, &checkpoint.training})
      std::erase_if(*tensors, [](const auto& entry) { return is_statistic(entry.first); });
    ASSERT_EQ(checkpoint.weights.size() + 2, all);
    write_checkpoint(run + name, checkpoint);
  }
}

// A finished run of 2 epochs becomes one of 3 that was interrupted.
void lengthen(const std::string& run) {
  std::string config = read_file(run + "/config.toml", 1 << 20);
  const size_t at = config.find("epochs = 2");
  ASSERT_NE(at, std::string::npos);
  config.replace(at, 10, "epochs = 3");
  write_file_atomically(run + "/config.toml", config);
  fs::remove(run + "/done");
}

std::vector<std::string> results(const std::string& run) {
  std::vector<std::string> lines;
  for (const Json& line : read_metrics(run + "/metrics.jsonl"))
    if (line["kind"] == "train" || line["kind"] == "eval")
      lines.push_back(cat(line["kind"], line["step"], line["loss"], line["accuracy"]));
  return lines;
}

TEST(Normalisation, RunsOfEarlierVersionsGoOnWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string now = folder.path("now"), earlier = folder.path("earlier");
  ASSERT_EQ(run_program({"train", tiny_config(folder), "--set", "train.epochs=2", "--out", now}).exit_code, 0);
  int statistics = 0;
  for (const auto& [name, tensor] : read_checkpoint(now + "/checkpoints/best.safetensors").weights)
    if (is_statistic(name)) {
      ++statistics;
      EXPECT_EQ(tensor.scalar_type(), at::kDouble);
      EXPECT_TRUE(at::equal(tensor, at::full({3}, 0.5, at::kDouble)));
    }
  EXPECT_EQ(statistics, 2);

  fs::copy(now, earlier, fs::copy_options::recursive);
  forget_statistics(earlier);
  const auto evaluated = [](const std::string& run, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"eval", run, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json line = Json::parse(result.out);
    for (const char* measured : {"seconds", "images_per_s", "peak_memory_mb"}) line.erase(measured);
    return line;
  };
  EXPECT_EQ(evaluated(now), evaluated(earlier));
  // The model normalises anyway; without the step, bytes become pixels that differ in the last bit.
  EXPECT_NEAR(evaluated(now)["loss"].get<double>(),
              evaluated(now, {"--set", "transforms.eval=[]"})["loss"].get<double>(), 1e-5);
  const Json other = evaluated(now, {"--set", R"(transforms.eval=[{op="normalize",mean=[0.1],std=[0.5]}])"});
  EXPECT_GT(std::abs(evaluated(now)["loss"].get<double>() - other["loss"].get<double>()), 1e-3);

  for (const std::string& run : {now, earlier}) {
    lengthen(run);
    const ProgramResult resumed = run_program({"train", "--resume", run, "--allow-changed-config"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("resumed at step 16 of 24"), std::string::npos) << resumed.err;
  }
  EXPECT_EQ(results(now), results(earlier));
  const NamedTensors left = read_checkpoint(now + "/checkpoints/last.safetensors").training,
                     right = read_checkpoint(earlier + "/checkpoints/last.safetensors").training;
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(at::equal(left[i].second, right[i].second)) << left[i].first;
}

TEST(Normalisation, TrainingAndEvaluationAgreeOrNothingIsMade) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const ProgramResult result = run_program({"train", tiny_config(folder), "--set", "transforms.eval=[]", "--out", run});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("[transforms] train and eval normalize differently (mean [0.5] and std [0.5]; none)"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_FALSE(fs::exists(run));
}

}  // namespace
}  // namespace sparsight::testing::normalisation_test
