// WRN-pMoE through the program: weights, batch norm statistics and averaged weights survive checkpoints, an interrupted
// run ends like an uninterrupted one, and its routings can be explained.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/checkpoint.h"
#include "tests/support/program.h"

namespace sparsight::testing::wide_resnet_test {

constexpr const char* kConfig = R"(
[run]
seed = 3
threads = 1

[data]
name = "planted"
side = 32
train = 48
validation = 16
test = 16
correlation = 0.9

[loader]
batch = 16

[model]
name = "wide_resnet"
widen = 1

[moe]
blocks = [-1]
experts = 4

[experts]
name = "norm_conv"
channels = 64
path = "dense"

[router]
name = "patch_choice"
patches = 2
gate = "softmax_topl"

[train]
epochs = 2
ema_decay = 0.9
checkpoint_every = 1
keep = "last"

[optimizer]
name = "sgd"
lr = 0.1
)";

void expect_equal_tensors(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(at::equal(a[i].second, b[i].second)) << a[i].first;
  }
}

TEST(WideResnetRun, ResumesEvaluatesAndExplains) {
  const TemporaryFolder folder;
  const std::string config = folder.write("wrn.toml", kConfig), whole = folder.path("whole"),
                    parts = folder.path("parts");
  const auto train = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"train", config, "--out", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string table = train(whole, {});
  EXPECT_NE(table.find("bright paper"), std::string::npos) << table;
  EXPECT_NE(table.find("worst"), std::string::npos) << table;
  const Checkpoint last = read_checkpoint(whole + "/checkpoints/last.safetensors");
  const auto has = [](const NamedTensors& tensors, const std::string& name) {
    for (const auto& [key, tensor] : tensors)
      if (key == name) return true;
    return false;
  };
  for (const char* name : {"groups.2.0.moe.experts.running_mean", "groups.2.0.moe.experts.w1", "norm.running_var"}) {
    EXPECT_TRUE(has(last.weights, name)) << name;
    EXPECT_TRUE(has(last.training, cat("ema/", name))) << name;
  }

  Program program({"train", config, "--out", parts});
  for (int i = 0; i < 10000 && !std::filesystem::exists(parts + "/checkpoints/last.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGINT);
  program.wait();
  const ProgramResult resumed = run_program({"train", "--resume", parts});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  const Checkpoint other = read_checkpoint(parts + "/checkpoints/last.safetensors");
  expect_equal_tensors(last.weights, other.weights);
  expect_equal_tensors(last.training, other.training);

  EXPECT_EQ(run_program({"eval", whole, "--json"}).exit_code, 0);
  const ProgramResult explained = run_program({"explain", whole, "--images", "4"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_EQ(run_program({"report", whole}).exit_code, 0);
}

}  // namespace sparsight::testing::wide_resnet_test
