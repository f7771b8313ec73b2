// Training through the program: the whole run, Ctrl-C, SIGKILL at any moment, and losses that are not finite.
#include <signal.h>

#include <cmath>
#include <filesystem>

#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/data/readers/png_write.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::train_test {
namespace {

namespace fs = std::filesystem;

bool writes_a_checkpoint(const std::string& run) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(run + "/checkpoints", ignored))
    if (entry.path().extension() == kTemporaryEnding) return true;
  return false;
}

TEST(Train, WritesAWholeRunFolder) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  const ProgramResult result = train_tiny(folder, run);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* name : {"config.toml", "env.json", "metrics.jsonl", "checkpoints/last.safetensors",
                           "checkpoints/best.safetensors", "confused.json", "report.html", "done"})
    EXPECT_TRUE(fs::exists(run + "/" + name)) << name;
  EXPECT_NE(result.out.find("blocks.1.mlp"), std::string::npos) << result.out;  // per-expert load
  EXPECT_NE(result.out.find("  class "), std::string::npos) << result.out;      // accuracy by class
  EXPECT_EQ(result.out.find("(= validation)"), std::string::npos) << result.out;
  const std::vector<Json> metrics = read_metrics(run + "/metrics.jsonl");
  EXPECT_EQ(metrics.back()["kind"], "done");
  EXPECT_EQ(metrics.back()["step"], 32);  // 256 / 32 * 4
  double first = 0, final = 0;
  for (const Json& line : metrics)
    if (line["kind"] == "train") (first == 0 ? first : final) = line["task_loss"].get<double>();
  EXPECT_LT(final, first);
}

// 4 classes of 12 grey pictures in class/image.png: the validation split is cut from them, and there is no other.
std::string config_of_own_images(const TemporaryFolder& folder) {
  for (int i = 0; i < 48; ++i)
    folder.write(cat("images/class", i % 4, "/", i, ".png"), encode_png(at::full({1, 16, 16}, 5 * i, at::kByte)));
  std::string config = kTinyConfig;
  const size_t start = config.find("[data]");
  config.replace(start, config.find("[transforms]") - start,
                 cat("[data]\nname = \"folder\"\nchannels = 1\nroot = \"", folder.path("images"), "\"\n\n"));
  return folder.write("own.toml", config);
}

TEST(Train, SaysWhereTheTestPartIsTheValidationPart) {
  TemporaryFolder folder;
  const std::string run = folder.path("run"), config = config_of_own_images(folder);
  const std::string said =
      "no test split of its own: \"test\" is the validation split, on which the best weights were chosen";
  const ProgramResult result = run_program({"train", config, "--out", run});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const size_t at = result.err.find(said);
  EXPECT_NE(at, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find(said, at + 1), std::string::npos) << "said twice";
  EXPECT_NE(result.out.find("  test (= validation)  "), std::string::npos) << result.out;
  EXPECT_NE(read_file(run + "/report.html", size_t{1} << 24).find("test (= validation) accuracy"), std::string::npos);
  const ProgramResult evaluated = run_program({"eval", run});
  EXPECT_NE(evaluated.out.find("test (= validation)"), std::string::npos) << evaluated.out << evaluated.err;

  fs::remove(run + "/done");  // the lines of the end are written again
  ASSERT_EQ(run_program({"train", "--resume", run}).exit_code, 0);
  int notes = 0, tests = 0;
  for (const Json& line : read_metrics(run + "/metrics.jsonl")) {
    if (line["kind"] == "note") notes += line["text"].get<std::string>().find(said) != std::string::npos;
    if (line["kind"] != "eval") continue;
    tests += line["split"] == "test";
    EXPECT_EQ(line.contains("same_as"), line["split"] == "test");
  }
  EXPECT_EQ(notes, 1);
  EXPECT_EQ(tests, 2);  // the weights as trained and the averaged ones

  const ProgramResult last_weights =
      run_program({"train", config, "--out", folder.path("last"), "--set", "train.keep=last"});
  EXPECT_NE(last_weights.err.find("\"test\" is the validation split\n"), std::string::npos) << last_weights.err;
}

TEST(Train, SaysWhereTheValidationPartIsTheTestPart) {
  TemporaryFolder folder;
  const std::string config = config_of_own_images(folder), png = encode_png(at::zeros({1, 16, 16}, at::kByte));
  for (int i = 0; i < 80; ++i)
    folder.write(cat("split/", i < 40 ? "train" : "test", "/class", i % 4, "/", i, ".png"), png);
  const ProgramResult result = run_program({"train", config, "--out", folder.path("run"), "--set",
                                            "data.root=" + folder.path("split"), "--set", "data.validation=0"});
  EXPECT_NE(result.err.find("no validation split of its own: \"val\" is the test split, on which"), std::string::npos)
      << result.err;
}

TEST(Train, TheLastAveragedWeightsReplaceMissingBestOnes) {
  TemporaryFolder folder;
  const std::string run = folder.path("run"), best = run + "/checkpoints/best.safetensors";
  // Weights that stay the same are best where they are evaluated first, before the last step.
  const std::vector<std::string> settings{"--set", "train.max_steps=4", "--set", "train.eval_every=2",
                                          "--set", "optimizer.lr=0"};
  ASSERT_EQ(train_tiny(folder, run, settings).exit_code, 0);
  fs::remove(run + "/done");
  fs::remove(best);
  const ProgramResult resumed = run_program({"train", "--resume", run});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find(best + " is missing"), std::string::npos) << resumed.err;
  NamedTensors averaged;
  for (const auto& [name, tensor] : read_checkpoint(last_checkpoint(run)).training)
    if (name.starts_with("ema/")) averaged.emplace_back(name.substr(4), tensor);
  expect_equal_tensors(read_checkpoint(best).weights, averaged);
  const std::vector<Json> metrics = read_metrics(run + "/metrics.jsonl");
  EXPECT_EQ(metrics.at(metrics.size() - 2)["split"], "test");
  EXPECT_EQ(metrics.at(metrics.size() - 2)["step"], 4);
}

TEST(Train, TwiceTheSameConfigurationGivesTheSameBits) {
  TemporaryFolder folder;
  ASSERT_EQ(train_tiny(folder, folder.path("a")).exit_code, 0);
  ASSERT_EQ(train_tiny(folder, folder.path("b"), {"--set", "loader.workers=0"}).exit_code, 0);
  expect_same_run(folder.path("a"), folder.path("b"));
}

TEST(Train, KilledAtSeveralMomentsAndResumedEqualsAnUnbrokenRun) {
  TemporaryFolder folder;
  const std::string unbroken = folder.path("unbroken"), killed = folder.path("killed");
  ASSERT_EQ(train_tiny(folder, unbroken).exit_code, 0);

  {  // in the middle of steps
    Program program({"train", tiny_config(folder), "--out", killed});
    ASSERT_TRUE(wait_until([&] { return saved_step(killed) >= 4; }));
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  }
  {  // while a checkpoint is written
    Program program({"train", "--resume", killed});
    const int64_t before = saved_step(killed);
    ASSERT_TRUE(wait_until([&] { return saved_step(killed) > before; }));
    ASSERT_TRUE(wait_until([&] { return writes_a_checkpoint(killed); }));
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  }
  {  // near the end
    Program program({"train", "--resume", killed});
    ASSERT_TRUE(wait_until([&] { return saved_step(killed) >= 24; }));
    program.send(SIGKILL);
    EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  }
  const ProgramResult resumed = run_program({"train", "--resume", killed});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_run(unbroken, killed);
}

// Resuming keeps the lines up to the checkpoint's step: one saved before its own evaluation would repeat it.
TEST(Train, ACheckpointIsSavedAfterTheEvaluationOfItsStep) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  Program program(
      {"train", tiny_config(folder), "--out", run, "--set", "train.eval_every=8", "--set", "train.checkpoint_every=8"});
  ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 8; }));
  program.send(SIGKILL);
  program.wait();
  const Json progress = read_checkpoint(last_checkpoint(run)).state["progress"];
  EXPECT_EQ(progress["evaluated_step"], progress["step"]);
}

TEST(Train, CtrlCWritesACheckpointAndSaysHowToResume) {
  TemporaryFolder folder;
  const std::string unbroken = folder.path("unbroken"), run = folder.path("run");
  ASSERT_EQ(train_tiny(folder, unbroken).exit_code, 0);
  Program program({"train", tiny_config(folder), "--out", run});
  ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 2; }));
  program.send(SIGINT);
  const ProgramResult result = program.wait();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("sparsight train --resume " + run), std::string::npos) << result.err;
  EXPECT_FALSE(fs::exists(run + "/done"));
  ASSERT_EQ(run_program({"train", "--resume", run}).exit_code, 0);
  expect_same_run(unbroken, run);
}

TEST(Train, ClassWeightsAreASettingOfTheRun) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  ASSERT_EQ(train_tiny(folder, run, {"--set", "train.class_weights=[1,0,4,1]", "--set", "train.max_steps=3"}).exit_code,
            0);
  EXPECT_NE(read_file(run + "/config.toml", 1 << 20).find("class_weights = [1.0, 0.0, 4.0, 1.0]"), std::string::npos);
  const auto refused = [&](const std::vector<std::string>& more) {
    const ProgramResult result = train_tiny(folder, folder.path("refused"), more);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  EXPECT_NE(refused({"--set", "train.class_weights=[1,2]"}).find("has 2 numbers, but the data has 4 classes"),
            std::string::npos);
  EXPECT_NE(refused({"--set", "train.class_weights=balanced", "--set", "train.task_loss=sigmoid_cross_entropy"})
                .find("weigh the classes of a softmax"),
            std::string::npos);
  EXPECT_NE(refused({"--set", "train.class_weights=[nan,1,1,1]"}).find("must be finite"), std::string::npos);
  EXPECT_NE(
      refused({"--set", "train.class_weights=balanced", "--set", "algorithm.name=irm", "--set",
               "data.domains=[\"clean\",\"sketch\"]", "--set", "loader.per_domain=true", "--set", "loader.batch=8"})
          .find("take no train.class_weights"),
      std::string::npos);
}

// One batch of 32, two of 16 or four of 8: the same images get the same router noise, dropout and drop path, so steps
// differ by rounding alone. Balance losses are sums over a batch and would not be additive; they are off.
TEST(Train, S33_SplittingABatchChangesNoNoise) {
  TemporaryFolder folder;
  const auto task_losses = [&](int64_t parts, const std::string& noise) {
    const std::string run = folder.path(cat("run", parts, noise));
    const ProgramResult result =
        train_tiny(folder, run,
                   {"--set", cat("loader.batch=", 32 / parts), "--set", cat("train.accumulate=", parts), "--set",
                    "model.dropout=0.1", "--set", "losses.vmoe_importance=0", "--set", "losses.vmoe_load=0", "--set",
                    "train.log_every=1", "--set", "train.max_steps=6", "--set", "router.noise=" + noise});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<double> losses;
    for (const Json& line : read_metrics(run + "/metrics.jsonl"))
      if (line["kind"] == "train") losses.push_back(line["task_loss"].get<double>());
    EXPECT_EQ(losses.size(), 6u);
    return losses;
  };
  const std::vector<double> whole = task_losses(1, "3");
  for (const int64_t parts : {2, 4}) {
    const std::vector<double> split = task_losses(parts, "3");
    for (size_t step = 0; step < whole.size(); ++step)
      EXPECT_NEAR(split[step], whole[step], 1e-5) << parts << " " << step;
  }
  // Different noise has a far larger effect than that.
  EXPECT_GT(std::abs(task_losses(1, "0")[0] - whole[0]), 1e-3);
}

// With a router that learns from what the accumulated batches chose: its bias is state too.
TEST(Train, AccumulatedBatchesAndABalancingBiasAreResumable) {
  TemporaryFolder folder;
  const std::string unbroken = folder.path("unbroken"), run = folder.path("run");
  const std::vector<std::string> more{"--set", "train.accumulate=3",      "--set", "train.checkpoint_every=1",
                                      "--set", "router.name=sigmoid_bias"};
  ASSERT_EQ(train_tiny(folder, unbroken, more).exit_code, 0);
  std::vector<std::string> arguments{"train", tiny_config(folder), "--out", run};
  arguments.insert(arguments.end(), more.begin(), more.end());
  {
    Program program(arguments);
    ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 3; }));
    program.send(SIGKILL);
    program.wait();
  }
  ASSERT_EQ(run_program({"train", "--resume", run}).exit_code, 0);
  expect_same_run(unbroken, run);
  bool moved = false;
  for (const auto& [name, tensor] : read_checkpoint(last_checkpoint(run)).weights)
    if (name.ends_with("router.bias")) moved = moved || tensor.abs().max().item<float>() > 0;
  EXPECT_TRUE(moved);
}

TEST(Train, StopsAtALossThatIsNotFiniteAndKeepsTheLastGoodCheckpoint) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  const ProgramResult result = train_tiny(folder, run,
                                          {"--set", "optimizer.lr=1e6", "--set", "optimizer.name=sgd", "--set",
                                           "train.clip_norm=0", "--set", "train.checkpoint_every=1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("not finite at step"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("--on-nan skip"), std::string::npos) << result.err;
  for (const auto& [name, tensor] : read_checkpoint(last_checkpoint(run)).weights)
    EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
  const ProgramResult again = run_program({"train", "--resume", run});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("not finite at step"), std::string::npos) << again.err;
  const ProgramResult skipping = run_program({"train", "--resume", run, "--on-nan", "skip"});
  EXPECT_EQ(skipping.exit_code, 0) << skipping.err;
  EXPECT_NE(skipping.err.find("the step is skipped"), std::string::npos) << skipping.err;
}

TEST(Train, SkipsStepsThatAreNotFiniteWhenAsked) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  const ProgramResult result = train_tiny(
      folder, run,
      {"--on-nan", "skip", "--set", "optimizer.lr=1e6", "--set", "optimizer.name=sgd", "--set", "train.clip_norm=0"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("the step is skipped"), std::string::npos) << result.err;
}

TEST(Train, RefusesAFolderThatHoldsARunAndLeavesAFinishedOneAsItIs) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  ASSERT_EQ(train_tiny(folder, run, {"--set", "train.max_steps=2"}).exit_code, 0);
  const ProgramResult again = train_tiny(folder, run);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos) << again.err;
  EXPECT_EQ(saved_step(run), 2);
  for (const std::vector<std::string>& extra :
       {std::vector<std::string>{"--overwrite"}, {"--init-from", last_checkpoint(run)}}) {
    std::vector<std::string> arguments{"train", "--resume", run};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    EXPECT_EQ(run_program(arguments).exit_code, 2) << extra.front();
  }
  const ProgramResult finished = run_program({"train", "--resume", run});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_NE(finished.err.find("is finished"), std::string::npos) << finished.err;
  EXPECT_NE(finished.out.find("run folder: " + run), std::string::npos) << finished.out;
  EXPECT_EQ(saved_step(run), 2);
  EXPECT_EQ(train_tiny(folder, run, {"--overwrite", "--set", "train.max_steps=3"}).exit_code, 0);
  EXPECT_EQ(saved_step(run), 3);
}

TEST(Train, AChangedConfigurationNeedsAFlagToResume) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  ASSERT_EQ(run_program({"train", tiny_config(folder), "--out", run, "--set", "train.epochs=1"}).exit_code, 0);
  fs::remove(run + "/done");
  std::string config = read_file(run + "/config.toml", 1 << 20);
  const size_t lr = config.find("lr = 0.002");
  ASSERT_NE(lr, std::string::npos);
  write_file_atomically(run + "/config.toml", config.replace(lr, 10, "lr = 0.004"));
  const ProgramResult refused = run_program({"train", "--resume", run});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(
      refused.err.find("was changed after the last checkpoint: optimizer/lr is 0.004, was 0.002; undo that, or go "
                       "on with --allow-changed-config"),
      std::string::npos)
      << refused.err;
  EXPECT_EQ(run_program({"train", "--resume", run, "--on-nan", "skip", "--allow-changed-config"}).exit_code, 0);
}

TEST(Train, ALostLastCheckpointIsNotTrainedOver) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  ASSERT_EQ(run_program({"train", tiny_config(folder), "--out", run, "--set", "train.epochs=1"}).exit_code, 0);
  fs::remove(run + "/done");
  fs::remove(run + "/checkpoints/last.safetensors");
  const ProgramResult refused = run_program({"train", "--resume", run});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("last.safetensors is missing, so this run cannot be resumed"), std::string::npos);
  EXPECT_NE(refused.err.find("--init-from"), std::string::npos);
  EXPECT_TRUE(fs::exists(run + "/checkpoints/best.safetensors"));
}

TEST(Train, OverwritingARunRemovesItsExplanationsAndRecords) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  const std::vector<std::string> train = {"train", tiny_config(folder), "--out", run, "--set", "train.epochs=1"};
  ASSERT_EQ(run_program(train).exit_code, 0);
  ASSERT_EQ(run_program({"explain", run, "--images", "2"}).exit_code, 0);
  folder.write("run/explain/mine.png", "mine");
  folder.write("run/explain_images/explain.json", "{}");
  ASSERT_EQ(run_program({"eval", run, "--records", run + "/records"}).exit_code, 0);
  std::vector<std::string> again = train;
  again.push_back("--overwrite");
  ASSERT_EQ(run_program(again).exit_code, 0);
  EXPECT_FALSE(fs::exists(run + "/explain/explain.json"));
  EXPECT_FALSE(fs::exists(run + "/explain_images/explain.json"));
  EXPECT_FALSE(fs::exists(run + "/records"));
  EXPECT_TRUE(fs::exists(run + "/explain/mine.png"));
}

TEST(Train, FrozenLayersKeepTheirWeights) {
  TemporaryFolder folder;
  ASSERT_EQ(train_tiny(folder, folder.path("one"), {"--set", "train.max_steps=1"}).exit_code, 0);
  ASSERT_EQ(train_tiny(folder, folder.path("two"),
                       {"--set", "train.freeze=[\"blocks.0\"]", "--set", "train.max_steps=8", "--init-from",
                        last_checkpoint(folder.path("one"))})
                .exit_code,
            0);
  const Checkpoint before = read_checkpoint(last_checkpoint(folder.path("one"))),
                   after = read_checkpoint(last_checkpoint(folder.path("two")));
  for (size_t i = 0; i < before.weights.size(); ++i) {
    const auto& [name, tensor] = before.weights[i];
    const bool stays = name.starts_with("blocks.0.") || name.starts_with("normalize.");
    EXPECT_EQ(at::equal(tensor, after.weights[i].second), stays) << name;
  }
}

}  // namespace
}  // namespace sparsight::testing::train_test
