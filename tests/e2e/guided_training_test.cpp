// Super-class guidance through the program: glyphs of four frames, four experts, one routing decision for each image.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "sparsight/io/metrics_log.h"
#include "tests/support/program.h"

namespace sparsight::testing::guided_training_test {
namespace {

const char* const kConfig = R"(
[run]
seed = 3
threads = 1

[data]
name = "glyphs"
classes = 8
super_classes = 4
side = 16
train = 256
validation = 64
test = 64
distractors = 0
domains = ["clean"]

[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]

[loader]
batch = 32

[model]
name = "mlp"

[moe]
blocks = [-1]
experts = 4

[router]
name = "per_image"

[train]
epochs = 10
log_every = 8
eval_every = 80

[optimizer]
name = "adamw"
lr = 0.004
)";

ProgramResult train(const TemporaryFolder& folder, const std::string& run, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"train", folder.write("guided.toml", kConfig), "--out", folder.path(run)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

std::vector<double> superclass_losses(const TemporaryFolder& folder, const std::string& run) {
  std::vector<double> values;
  for (const Json& line : read_metrics(folder.path(run) + "/metrics.jsonl"))
    if (line["kind"] == "train" && line["losses"].contains("superclass"))
      values.push_back(line["losses"]["superclass"].get<double>());
  return values;
}

}  // namespace

TEST(GuidedTraining, TheSuperClassLossIsInTheMetricsAndFalls) {
  const TemporaryFolder folder;
  const ProgramResult result = train(folder, "run");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<double> losses = superclass_losses(folder, "run");
  ASSERT_EQ(losses.size(), 10u);
  EXPECT_NEAR(losses.front(), 1.386294, 0.1);  // ln 4: the router starts indifferent
  EXPECT_LT(losses.back(), 0.5);               // seen: 0.14
}

TEST(GuidedTraining, WithOtherNumbersOfExpertsItIsLeftOutOrRefused) {
  const TemporaryFolder folder;
  const ProgramResult alone = train(folder, "alone", {"--set", "moe.experts=8", "--set", "train.max_steps=3"});
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_NE(alone.err.find("not guided by super-classes"), std::string::npos) << alone.err;
  EXPECT_TRUE(superclass_losses(folder, "alone").empty());
  const ProgramResult refused = train(folder, "refused", {"--set", "moe.experts=8", "--set", "losses.superclass=0.3"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("4 super-classes and [moe] experts is 8"), std::string::npos) << refused.err;
}

}  // namespace sparsight::testing::guided_training_test
