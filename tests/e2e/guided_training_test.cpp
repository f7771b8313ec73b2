// Super-class guidance through the program: glyphs of four frames, four experts, one routing decision for each image.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "sparsight/analysis/superclasses/map_file.h"
#include "sparsight/core/input_file.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/safetensors.h"
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

// Eight classes in two halves.
const char* const kHalves = "0\n0\n0\n0\n1\n1\n1\n1\n";

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
  const ProgramResult result = train(folder, "run", {"--set", "train.epochs=16"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<double> losses = superclass_losses(folder, "run");
  ASSERT_EQ(losses.size(), 16u);
  EXPECT_NEAR(losses.front(), 1.386294, 0.1);  // ln 4: the router starts indifferent
  EXPECT_LT(losses.back(), 0.5);               // seen: 0.13
}

// L = L_C + 0.3 L_g in the log; without a weight the loss is the task's, to the last bit.
TEST(GuidedTraining, M16_TheLossIsThatOfTheTaskPlusTheWeightedGuidedLoss) {
  const TemporaryFolder folder;
  const auto lines = [&](const std::string& run, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--set", "train.max_steps=4", "--set", "train.log_every=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = train(folder, run, arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<Json> found;
    for (Json& line : read_metrics(folder.path(run) + "/metrics.jsonl"))
      if (line["kind"] == "train") found.push_back(std::move(line));
    EXPECT_EQ(found.size(), 4u);
    return found;
  };
  for (const Json& line : lines("guided", {}))
    EXPECT_NEAR(line["loss"].get<double>(),
                line["task_loss"].get<double>() + 0.3 * line["losses"]["superclass"].get<double>(), 1e-6);
  for (const Json& line : lines("alone", {"--set", "losses.superclass=0"})) {
    EXPECT_EQ(line["loss"], line["task_loss"]);
    EXPECT_TRUE(line["losses"].empty());
    EXPECT_FALSE(line.contains("router_accuracy"));
  }
}

TEST(GuidedTraining, M27_OtherNumbersOfExpertsAreRefusedUnlessTheRouterIsUnguided) {
  const TemporaryFolder folder;
  const ProgramResult refused = train(folder, "refused", {"--set", "moe.experts=8"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("glyphs has 4 for the 8 experts"), std::string::npos) << refused.err;
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
  const ProgramResult alone =
      train(folder, "alone", {"--set", "moe.experts=8", "--set", "losses.superclass=0", "--set", "train.max_steps=3"});
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_TRUE(superclass_losses(folder, "alone").empty());
}

// Killed in the middle, its map deleted: the run ends with the bits of one that was not, and needs no file.
TEST(GuidedTraining, AMapFromAFileIsKeptInTheRun) {
  const TemporaryFolder folder;
  const std::string map = folder.write("map.txt", kHalves);
  const std::vector<std::string> given{
      "--set", "superclasses.source=file", "--set", "superclasses.file=" + map, "--set", "moe.experts=2",
      "--set", "train.checkpoint_every=5"};
  ASSERT_EQ(train(folder, "whole", given).exit_code, 0);
  std::vector<std::string> arguments{"train", folder.path("guided.toml"), "--out", folder.path("killed")};
  arguments.insert(arguments.end(), given.begin(), given.end());
  const std::string last = folder.path("killed/checkpoints/last.safetensors");
  {
    Program killed(arguments);
    for (int wait = 0; wait < 3000 && !std::filesystem::exists(last); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    killed.send(SIGKILL);
    killed.wait();
  }
  EXPECT_EQ(read_file(folder.path("killed/superclasses.txt"), 1000), kHalves);
  folder.write("map.txt", "0\n1\n0\n0\n1\n1\n1\n1\n");
  const std::vector<std::string> resume{"train", "--resume", folder.path("killed")};
  if (!std::filesystem::exists(folder.path("killed/done"))) {
    const ProgramResult other = run_program(resume);
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_NE(other.err.find("has class 1 in super-class 0, now 1"), std::string::npos) << other.err;
  }
  std::filesystem::remove(map);
  const ProgramResult resumed = run_program(resume);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(superclass_losses(folder, "killed"), superclass_losses(folder, "whole"));
  const Json state = Json::parse(read_safetensors_metadata(last)["state"]);
  EXPECT_EQ(state["data"]["super_class_of"], (Json{0, 0, 0, 0, 1, 1, 1, 1}));
  const ProgramResult evaluated = run_program({"eval", folder.path("killed")});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_NE(evaluated.out.find("router accuracy"), std::string::npos) << evaluated.out;
}

// The log, evaluations, records, the explanation and the report have the measures.
TEST(GuidedTraining, M42_TheRouterIsMeasuredEverywhere) {
  const TemporaryFolder folder;
  const ProgramResult trained = train(folder, "run");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("router accuracy"), std::string::npos) << trained.err;
  double last = -1;
  Json validated, tested;
  for (const Json& line : read_metrics(folder.path("run/metrics.jsonl"))) {
    if (line["kind"] == "train") last = line["router_accuracy"];
    if (line["kind"] == "eval") (line["split"] == "test" ? tested : validated) = line;
  }
  EXPECT_GT(last, 0.8);                          // in training
  EXPECT_GT(validated["router_accuracy"], 0.6);  // of one of four at random; seen: 0.84
  const Json layer = tested["layers"][0];
  EXPECT_EQ(layer["router_accuracy"], tested["router_accuracy"]);
  EXPECT_EQ(layer["experts_per_image"], 1);
  EXPECT_EQ(layer["experts_per_image_max"], 1);
  EXPECT_GT(layer["usage_entropy"], 1.2);  // of ln 4 = 1.386
  EXPECT_LE(layer["usage_entropy"], std::log(4) + 1e-9);
  EXPECT_EQ(tested["touched"]["parameters"], tested["touched"]["parameters_max"]);

  const Json evaluated = Json::parse(
      run_program({"eval", folder.path("run"), "--json", "--quiet", "--records", folder.path("run/records")}).out);
  EXPECT_EQ(evaluated["router_accuracy"], tested["router_accuracy"]);
  EXPECT_EQ(evaluated["touched"], tested["touched"]);
  const TensorFile records = read_safetensors(folder.path("run/records/records.safetensors"));
  at::Tensor true_class, choice;
  for (const auto& [name, tensor] : records.tensors) {
    if (name == "super_class") true_class = tensor;
    if (name.starts_with("router_choice/")) choice = tensor;
  }
  ASSERT_TRUE(true_class.defined() && choice.defined());
  EXPECT_NEAR(true_class.eq(choice).sum().item<double>() / 64, evaluated["router_accuracy"], 1e-9);

  const ProgramResult explained = run_program({"explain", folder.path("run")});
  ASSERT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_NE(explained.out.find("super-class  name"), std::string::npos) << explained.out;
  const std::string report = read_file(folder.path("run/report.html"), 64 << 20);
  for (const char* shown : {"Super-classes", "Router accuracy", "weights touched per image"})
    EXPECT_NE(report.find(shown), std::string::npos) << shown;
}

// The averaged weights are the result; the raw ones are evaluated beside them.
TEST(GuidedTraining, M35_RawAndAveragedWeightsAreBothEvaluated) {
  const TemporaryFolder folder;
  const ProgramResult trained =
      train(folder, "run", {"--set", "train.epochs=2", "--set", "train.ema_decay=0.9", "--set", "train.eval_every=8"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.out.find("ema (the result)"), std::string::npos) << trained.out;
  std::vector<Json> tests;
  for (const Json& line : read_metrics(folder.path("run/metrics.jsonl")))
    if (line["kind"] == "eval" && line["split"] == "test") tests.push_back(line);
  ASSERT_EQ(tests.size(), 2u);
  EXPECT_EQ(tests[0]["weights"], "model");
  EXPECT_EQ(tests[0]["reported"], false);
  EXPECT_EQ(tests[0]["step"], 16);
  EXPECT_EQ(tests[1]["weights"], "ema");
  EXPECT_EQ(tests[1]["reported"], true);
  EXPECT_NE(tests[0]["loss"], tests[1]["loss"]);
}

TEST(GuidedTraining, M28_RandomSuperClassesFollowFromTheirSeed) {
  const TemporaryFolder folder;
  const auto read_map = [&](const std::string& run, const std::string& seed) {
    const ProgramResult result = train(folder, run,
                                       {"--set", "superclasses.source=random", "--set", "superclasses.seed=" + seed,
                                        "--set", "moe.experts=3", "--set", "train.max_steps=2"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_superclass_map(folder.path(run) + "/superclasses.txt");
  };
  const std::vector<int64_t> first = read_map("a", "1");
  EXPECT_EQ(first, read_map("b", "1"));
  EXPECT_NE(first, read_map("c", "2"));
  std::vector<int64_t> sizes(3);
  for (const int64_t group : first) ++sizes.at(static_cast<size_t>(group));
  std::ranges::sort(sizes);
  EXPECT_EQ(sizes, (std::vector<int64_t>{2, 3, 3}));
}

TEST(GuidedTraining, AMapThatDoesNotFitIsOneLine) {
  const TemporaryFolder folder;
  for (const auto& [text, message] : {std::pair{"0\n1\n", "has 2 lines, and glyphs has 8 classes"},
                                      {"0\n3\n0\n3\n0\n3\n0\n3\n", "no line names 1"}}) {
    const ProgramResult result =
        train(folder, "run",
              {"--set", "superclasses.source=file", "--set", "superclasses.file=" + folder.write("map.txt", text)});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder.path("run")));
  }
}

}  // namespace sparsight::testing::guided_training_test
