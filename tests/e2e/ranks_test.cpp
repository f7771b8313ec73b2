// Runs of several processes: the bits of one process, and what happens when a process dies.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sparsight/core/options.h"
#include "sparsight/dist/join.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/folder_contents.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::testing::ranks_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  std::vector<std::string> settings;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<std::string> flags(const std::vector<std::string>& settings) {
  std::vector<std::string> all;
  for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
  return all;
}

// The lines of metrics.jsonl without times, rates and memory.
std::vector<std::string> lines(const std::string& run) {
  std::ifstream file(run + "/metrics.jsonl");
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) {
    Json json = unchecked_json(line);
    for (const char* const key : {"seconds", "images_per_s", "peak_memory_mb", "time"}) json.erase(key);
    if (json.contains("training"))
      for (const char* const key : {"step_seconds", "images_per_s", "peak_memory_mb"}) json["training"].erase(key);
    all.push_back(json.dump());
  }
  return all;
}

class Ranks : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  }

  // Returns the run's folder.
  std::string train(const std::string& name, int64_t processes, int64_t accumulate, std::vector<std::string> more) {
    more.push_back("train.accumulate=" + std::to_string(accumulate));
    std::vector<std::string> arguments = flags(more);
    if (processes > 0) arguments.insert(arguments.end(), {"--processes", std::to_string(processes)});
    const ProgramResult result = train_tiny(folder_, folder_.path(name), arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_.path(name);
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(Ranks, G50_OneToFourRanksHaveTheBitsOfOneProcess) {
  const std::vector<std::string> settings{"train.epochs=2", "data.train=250", "loader.drop_last=false",
                                          "train.log_every=1"};
  for (const auto& [ranks, accumulate] : {std::pair{1, 2}, {2, 1}, {3, 1}, {4, 1}, {2, 2}}) {
    const std::string name = std::to_string(ranks) + "x" + std::to_string(accumulate);
    const std::string several = train(name, ranks, accumulate, settings),
                      one = train("one" + name, 0, ranks * accumulate, settings);
    expect_same_run(several, one);
    EXPECT_EQ(lines(several), lines(one)) << name;
    EXPECT_TRUE(fs::exists(several + "/report.html"));
  }
}

TEST_P(Ranks, G50_HaveTheBitsOfOneProcess) {
  std::vector<std::string> settings = GetParam().settings;
  settings.insert(settings.end(), {"train.max_steps=4", "train.log_every=1"});
  const std::string several = train("several", 3, 1, settings), one = train("one", 0, 3, settings);
  expect_same_run(several, one);
  EXPECT_EQ(lines(several), lines(one));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Ranks,
    ::testing::Values(
        Case{"batch_norm", {"model.stem=[8]", "model.stem_blocks=1", "model.stem_norm=batch"}},
        Case{"noisy_router", {"router.name=noisy_topk", "losses.importance=0.1", "losses.load=0.1"}},
        Case{"capacity", {"capacity.factor=1", "capacity.group=17"}}, Case{"hash", {"router.name=hash", "router.k=1"}},
        Case{"sigmoid_bias", {"router.name=sigmoid_bias"}}, Case{"balanced", {"router.name=balanced_batchwise"}},
        Case{"soft_moe", {"router.name=soft_moe"}}, Case{"sgd", {"optimizer.name=sgd"}},
        Case{"sharded_adamw", {"dist.shard_optimizer=true", "train.ema_decay=0.9", "train.clip_norm=0.1"}},
        Case{"sharded_factored_adam", {"dist.shard_optimizer=true", "optimizer.name=factored_adam"}},
        Case{"sharded_muon",
             {"dist.shard_optimizer=true", "optimizer.name=muon", "train.ema_decay=0", "train.swa_start=2"}},
        // A checkpoint is due at other times on each rank, and all write it.
        Case{"sharded_by_time",
             {"dist.shard_optimizer=true", "train.checkpoint_every=0", "train.checkpoint_minutes=0.0005"}},
        Case{"class_weights",
             {"train.class_weights=[1,3,0.5,2]", "transforms.mixup=0.4", "transforms.label_smoothing=0.1"}},
        Case{"balanced_classes", {"train.class_weights=balanced"}},
        Case{"domains", {"loader.per_domain=true", "loader.batch=8"}}),
    [](const auto& test) { return test.param.name; });

TEST_F(Ranks, AKilledRankIsStartedAgainAndTheBitsAreThoseOfAnUnbrokenRun) {
  const std::vector<std::string> settings{"train.epochs=30"};
  const std::string whole = train("whole", 2, 1, settings);
  std::vector<std::string> arguments{"train", tiny_config(folder_), "--out", folder_.path("killed"), "--processes",
                                     "2"};
  const std::vector<std::string> more = flags(settings);
  arguments.insert(arguments.end(), more.begin(), more.end());
  Program run(arguments);
  ASSERT_TRUE(wait_until([&] { return saved_step(folder_.path("killed")) >= 4; }));
  kill_rank(folder_.path("killed"), 1);
  const ProgramResult result = run.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("was killed by signal 9; all ranks start again"), std::string::npos) << result.err;
  expect_same_run(whole, folder_.path("killed"));
}

TEST_F(Ranks, ARunGoesOnWithAnotherNumberOfRanks) {
  const std::vector<std::string> settings{"train.epochs=30"};
  const std::string whole = train("whole", 0, 4, settings);
  for (const auto& [before, after] : {std::pair{2, 4}, {4, 1}, {1, 2}}) {
    const std::string run = folder_.path(std::to_string(before) + "to" + std::to_string(after));
    std::vector<std::string> arguments{"train", tiny_config(folder_), "--out",
                                       run,     "--processes",        std::to_string(before)};
    const std::vector<std::string> more = flags({settings[0], "train.accumulate=" + std::to_string(4 / before)});
    arguments.insert(arguments.end(), more.begin(), more.end());
    Program stopped(arguments);
    ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 2; }));
    stopped.send(SIGINT);
    ASSERT_EQ(stopped.wait().exit_code, 1);
    if (before == 2) {
      const ProgramResult refused = run_program({"train", "--resume", run, "--processes", "3"});
      EXPECT_EQ(refused.exit_code, 2);
      EXPECT_NE(refused.err.find("have 4 batches, which cannot be shared out equally over 3"), std::string::npos)
          << refused.err;
    }
    const std::vector<std::string> resume{"train", "--resume", run, "--processes", std::to_string(after)};
    Program stopped_again(resume);
    ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 8; }));
    stopped_again.send(SIGINT);
    stopped_again.wait();
    const ProgramResult resumed = run_program(resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    expect_same_run(run, whole);
  }
}

TEST_F(Ranks, AShardedOptimizerGoesOnWithAnotherNumberOfRanks) {
  const std::vector<std::string> settings{"train.epochs=10", "dist.shard_optimizer=true", "train.ema_decay=0.9"};
  const std::string whole = train("whole", 0, 6, settings), run = folder_.path("run");
  std::vector<std::string> arguments{"train", tiny_config(folder_), "--out", run, "--processes", "2"},
      more = flags(settings);
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"--set", "train.accumulate=3"});
  Program stopped(arguments);
  ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 2; }));
  stopped.send(SIGINT);
  ASSERT_EQ(stopped.wait().exit_code, 1);
  const ProgramResult resumed = run_program({"train", "--resume", run, "--processes", "3"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_run(run, whole);
}

TEST_F(Ranks, EvaluationsHaveTheResultsAndRecordsOfOneProcess) {
  const std::string run = train("run", 0, 1, {"train.epochs=1", "loader.eval_batch=24"});
  const auto evaluated = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval", run, "--json", "--records", folder_.path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = Json::parse(result.out);
    for (const char* const key : {"seconds", "images_per_s", "peak_memory_mb"}) json.erase(key);
    return json.dump();
  };
  EXPECT_EQ(evaluated("several", {"--processes", "3"}), evaluated("one", {}));
  EXPECT_EQ(folder_contents(folder_.path("several")), folder_contents(folder_.path("one")));
}

}  // namespace sparsight::testing::ranks_test
