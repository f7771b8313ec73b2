// Convolutional networks whose late blocks are experts of whole images, and ViT-CNN hybrids, through the program: they
// train with guidance, an interrupted run ends like an uninterrupted one, and evaluations, attacks, records, replays,
// packed weights and explanations work.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/saved_run.h"
#include "tests/support/program.h"

namespace sparsight::testing::expert_columns_run_test {
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
train = 96
validation = 16
test = 16
distractors = 0
domains = ["clean"]

[transforms]
train = [{op = "normalize", mean = [0.5], std = [0.5]}]
eval = [{op = "normalize", mean = [0.5], std = [0.5]}]

[loader]
batch = 16

[router]
name = "per_image"
scope = "model"

[train]
epochs = 2
ema_decay = 0.9
log_every = 1
checkpoint_every = 1
keep = "last"

[optimizer]
name = "adamw"
lr = 0.003

)";

const char* const kMobilenet = R"(
[model]
name = "mobilenet"
width = 0.1
stem = "cifar"

[moe]
blocks = [-3, -2]
experts = 4
)";

// The convolutions halve the resolution twice; a token is a position of their map.
const char* const kHybrid = R"(
[model]
name = "vit"
width = 16
depth = 4
heads = 2
patch = 4
stem = [8, 16]

[moe]
blocks = [-2, -1]
experts = 4
)";

std::string make_config(const std::string& model) { return std::string(kConfig) + model; }

ProgramResult succeed(const std::vector<std::string>& arguments) {
  ProgramResult result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result;
}

}  // namespace

class RoutedImages : public ::testing::TestWithParam<const char*> {};

TEST_P(RoutedImages, TrainResumeEvaluateAndExplain) {
  const TemporaryFolder folder;
  const std::string config = folder.write("config.toml", make_config(GetParam())), whole = folder.path("whole"),
                    parts = folder.path("parts");
  succeed({"train", config, "--out", whole});
  int64_t guided = 0;
  for (const Json& line : read_metrics(whole + "/metrics.jsonl"))
    if (line["kind"] == "train" && line["losses"].contains("superclass")) ++guided;
  EXPECT_GT(guided, 0);

  Program program({"train", config, "--out", parts});
  for (int i = 0; i < 20000 && !std::filesystem::exists(parts + "/checkpoints/last.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.send(SIGINT);
  program.wait();
  succeed({"train", "--resume", parts});
  const Checkpoint last = read_checkpoint(whole + "/checkpoints/last.safetensors"),
                   other = read_checkpoint(parts + "/checkpoints/last.safetensors");
  expect_equal_tensors(last.weights, other.weights);
  expect_equal_tensors(last.training, other.training);

  const auto accuracy = [](const ProgramResult& result) { return Json::parse(result.out).dump(); };
  const std::string plain = accuracy(succeed({"eval", whole, "--json", "--save-routing", folder.path("routing")}));
  EXPECT_NE(plain.find("accuracy"), std::string::npos) << plain;
  succeed({"eval", whole, "--routing", folder.path("routing")});
  succeed({"eval", whole, "--weights", "bf16", "--records", folder.path("records")});
  EXPECT_TRUE(std::filesystem::exists(folder.path("records") + "/records.safetensors"));
  succeed({"explain", whole, "--images", "4"});
  succeed({"report", whole});
  for (const char* gradient : {"model", "experts", "router"})
    succeed({"attack", whole, "--attack", "pgd", "--eps", "4/255", "--images", "8", "--set", "attack.steps=2", "--set",
             std::string("attack.gradient=") + gradient, "--out", folder.path(std::string("attack_") + gradient)});
}

INSTANTIATE_TEST_SUITE_P(Models, RoutedImages, ::testing::Values(kMobilenet, kHybrid),
                         [](const auto& info) { return info.index == 0 ? "mobilenet" : "hybrid"; });

// The table of `config cost`: all parameters, and those of one column.
TEST(RoutedImagesCost, IsInTheTable) {
  const TemporaryFolder folder;
  const std::string config = folder.write("config.toml", make_config(kMobilenet));
  const std::string table = succeed({"config", "cost", config, "--image", "1,16,16", "--classes", "8"}).out;
  EXPECT_NE(table.find("features.15.moe.experts"), std::string::npos) << table;
  EXPECT_NE(table.find("\n  router "), std::string::npos) << table;
}

// A dense run starts a routed one: each expert is a copy.
TEST(RoutedImagesUpcycled, StartFromADenseRun) {
  const TemporaryFolder folder;
  const std::string config = folder.write("config.toml", make_config(kMobilenet)), dense = folder.path("dense");
  succeed({"train", config, "--out", dense, "--set", "moe.blocks=[]", "--set", "train.max_steps=2"});
  const ProgramResult result = succeed({"train", config, "--out", folder.path("moe"), "--init-from",
                                        dense + "/checkpoints/last.safetensors", "--set", "train.max_steps=2"});
  EXPECT_NE(result.err.find("upcycled: a copy of features.15.conv.0.0.weight"), std::string::npos) << result.err;
}

}  // namespace sparsight::testing::expert_columns_run_test
