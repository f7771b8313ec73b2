// Separate training of pMoE through the program: a router trained alone, then the experts behind it (algorithm 1 of the
// paper), on grids of glyphs.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

#include "sparsight/core/options.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/safetensors.h"
#include "tests/support/program.h"

namespace sparsight::testing::separate_training_test {
namespace {

const char* const kConfig = R"(
[run]
seed = 2
threads = 1

[data]
name = "composite"
cells = "glyphs"
grid = 3
train = 400
validation = 40
test = 200

[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]

[loader]
batch = 20
workers = 1

[model]
name = "patch_cnn"
patch = 28

[moe]
blocks = [0]
experts = 2

[experts]
name = "conv"
channels = 1
output = "normal"
init_std = 0.158

[router]
name = "patch_choice"
patches = 2
gate = "ones"
init_std = 1e-4

[optimizer]
name = "sgd"
lr = 0.2
momentum = 0
nesterov = false

[schedule]
name = "constant"
)";

using Weights = std::map<std::string, at::Tensor>;

ProgramResult train(const TemporaryFolder& folder, const std::string& run, std::vector<std::string> more) {
  std::vector<std::string> arguments{"train", folder.write("separate.toml", kConfig), "--out", folder.path(run),
                                     "--quiet"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

std::string last_weights(const TemporaryFolder& folder, const std::string& run) {
  return folder.path(run) + "/checkpoints/last.safetensors";
}

Weights last_state(const TemporaryFolder& folder, const std::string& run) {
  const NamedTensors tensors = read_safetensors(last_weights(folder, run)).tensors;
  return {tensors.begin(), tensors.end()};
}

double test_accuracy(const TemporaryFolder& folder, const std::string& run) {
  double accuracy = 0;
  for (const Json& line : read_metrics(folder.path(run) + "/metrics.jsonl"))
    if (line["kind"] == "eval" && line["split"] == "test") accuracy = line["accuracy"].get<double>();
  return accuracy;
}

// Two phases, each with its own trainable parameters.
const std::vector<std::string> kRouter{"--set", "losses.separation=1", "--set", "train.freeze=[\"moe.experts\"]",
                                       "--set", "train.epochs=3"};
std::vector<std::string> experts_after(const std::string& weights) {
  return {"--init-from", weights, "--set", "train.freeze=[\"moe.router\"]", "--set", "train.epochs=12"};
}

}  // namespace

TEST(SeparateTraining, P17_P76_TheRouterAloneThenTheExperts) {
  const TemporaryFolder folder;
  ProgramResult result = train(folder, "router", kRouter);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = train(folder, "experts", experts_after(last_weights(folder, "router")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Weights before = last_state(folder, "router"), after = last_state(folder, "experts");
  EXPECT_TRUE(before.at("moe.router.weight").equal(after.at("moe.router.weight")));
  EXPECT_TRUE(before.at("moe.experts.w2").equal(after.at("moe.experts.w2")));  // P10
  EXPECT_FALSE(before.at("moe.experts.w1").equal(after.at("moe.experts.w1")));
  // The paper's gradients for the two kernels differ in sign alone.
  const at::Tensor w = before.at("moe.router.weight");
  EXPECT_GT(w[0].norm().item<double>(), 1);
  EXPECT_LT((w[0] + w[1]).norm().item<double>(), 0.01);
  EXPECT_GT(test_accuracy(folder, "experts"), 0.7);  // seen: 0.83
  // Expert k takes the cell that makes class k more often than by chance, 2 of 9. Seen: 0.61 and 0.93.
  const ProgramResult explained =
      run_program({"explain", folder.path("experts"), "--images", "100", "--examples", "2", "--json", "--quiet"});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  const Json report = Json::parse(explained.out)["patch_routing"][0];
  EXPECT_EQ(report["of"], "cell");
  EXPECT_EQ(report["patches"], 9);
  for (size_t k = 0; k < 2; ++k) EXPECT_GT(report["classes"][k]["reached"][k].get<double>(), 0.45) << report.dump();
}

// Gates of a softmax would let the task train the router: without the task's weight only the separation loss does, and
// that gives the same kernels for both gates.
TEST(SeparateTraining, WithoutTheTasksWeightOnlyTheRoutersLossCounts) {
  const TemporaryFolder folder;
  std::vector<std::string> softmax = kRouter;
  for (const char* word : {"--set", "router.gate=topl_softmax", "--set", "train.task_weight=0"})
    softmax.push_back(word);
  ASSERT_EQ(train(folder, "ones", kRouter).exit_code, 0);
  ASSERT_EQ(train(folder, "softmax", softmax).exit_code, 0);
  const at::Tensor ones = last_state(folder, "ones").at("moe.router.weight"),
                   other = last_state(folder, "softmax").at("moe.router.weight");
  EXPECT_LT((ones - other).abs().max().item<double>(), 1e-6 * ones.abs().max().item<double>());
}

}  // namespace sparsight::testing::separate_training_test
