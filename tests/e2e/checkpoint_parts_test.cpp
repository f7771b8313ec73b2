// Trainings whose ranks write checkpoints together: what they save and how they go on is that of one file.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "sparsight/core/error.h"
#include "sparsight/dist/join.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/part_files.h"
#include "tests/e2e/output.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/unchecked_json.h"

namespace sparsight::testing::checkpoint_parts_test {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string name;
  int64_t processes;
  std::vector<std::string> settings;
  size_t parts;  // files of a checkpoint
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const std::vector<std::string> kInParts{"dist.checkpoint_parts=true"};
const std::vector<std::string> kExact{"train.clip_norm=0", "dist.exact=true"};

std::vector<std::string> joined(std::vector<std::string> all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string file(const std::string& run, const std::string& name) {
  return run + "/checkpoints/" + name + ".safetensors";
}

class CheckpointParts : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  }

  std::vector<std::string> command(const std::string& run, int64_t processes,
                                   const std::vector<std::string>& settings) {
    std::vector<std::string> all{"train", tiny_config(folder_), "--out", run};
    if (processes > 0) all.insert(all.end(), {"--processes", std::to_string(processes), "--max-restarts", "0"});
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    return all;
  }

  // Returns the run's folder.
  std::string train(const std::string& name, int64_t processes, const std::vector<std::string>& settings) {
    const ProgramResult result = run_program(command(folder_.path(name), processes, settings));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_.path(name);
  }

  // Stops a training after some checkpoints. Returns the run's folder.
  std::string stop(const std::string& name, int64_t processes, const std::vector<std::string>& settings) {
    Program stopped(command(folder_.path(name), processes, settings));
    EXPECT_TRUE(wait_until([&] { return saved_step(folder_.path(name)) >= 2; }));
    stopped.send(SIGINT);
    EXPECT_EQ(stopped.wait().exit_code, 1);
    return folder_.path(name);
  }

  void resume(const std::string& run, int64_t processes) {
    const ProgramResult result = run_program({"train", "--resume", run, "--processes", std::to_string(processes)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }

  Json evaluated(const std::string& run) {
    const ProgramResult result = run_program({"eval", run, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    Json json = json_lines(result.out).at(0);
    for (const char* const key : {"seconds", "images_per_s", "peak_memory_mb"}) json.erase(key);
    return json;
  }

  static void replace_setting(const std::string& run, const std::string& before, const std::string& after) {
    std::string config = read_file(run + "/config.toml", 1 << 20);
    ASSERT_NE(config.find(before), std::string::npos);
    config.replace(config.find(before), before.size(), after);
    write_file_atomically(run + "/config.toml", config);
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_P(CheckpointParts, HoldWhatOneFileHolds) {
  const auto& [name, processes, settings, parts] = GetParam();
  const std::vector<std::string> own = joined(settings, {"train.max_steps=4"});
  const std::string one = train("one", processes, own), several = train("several", processes, joined(own, kInParts));
  expect_same_run(several, one);
  const bool spreads_weights = name != "divided_optimizer";  // of which the best checkpoint has nothing
  EXPECT_EQ(find_parts(file(several, "last")).size(), parts);
  EXPECT_EQ(find_parts(file(several, "best")).size(), spreads_weights ? parts : 1);
  for (const char* const checkpoint : {"last", "best"}) EXPECT_FALSE(fs::exists(file(several, checkpoint)));
  EXPECT_EQ(evaluated(several), evaluated(one));
  const std::string merged = folder_.path("merged.safetensors");
  EXPECT_EQ(run_program({"weights", "merge", part_index(file(several, "last")), "--out", merged}).exit_code, 0);
  const Checkpoint left = read_checkpoint(merged), right = read_checkpoint(file(one, "last"));
  expect_equal_tensors(left.weights, right.weights);
  expect_equal_tensors(left.training, right.training);
  EXPECT_EQ(run_program({"weights", "merge", several, "--out", folder_.path("best.safetensors")}).exit_code, 0);
  expect_equal_tensors(read_checkpoint(folder_.path("best.safetensors")).weights,
                       read_checkpoint(file(one, "best")).weights);
}

INSTANTIATE_TEST_SUITE_P(Ranks, CheckpointParts,
                         ::testing::Values(Case{"one_process", 0, {}, 1}, Case{"all_experts_everywhere", 2, {}, 1},
                                           Case{"experts_over_ranks", 2, joined(kExact, {"dist.expert_parallel=2"}), 2},
                                           Case{"two_copies_of_experts", 4, joined(kExact, {"dist.expert_parallel=2"}),
                                                2},
                                           Case{"divided_optimizer", 3, {"dist.shard_optimizer=true"}, 3},
                                           Case{"free", 2, {"algorithm.name=free"}, 1}),
                         [](const auto& test) { return test.param.name; });

TEST_F(CheckpointParts, ARunGoesOnWithAnyRanksAndParts) {
  const std::vector<std::string> settings = joined(kExact, {"train.epochs=6"});
  const std::string whole = train("whole", 4, settings),
                    run = stop("run", 4, joined(settings, joined(kInParts, {"dist.expert_parallel=2"})));
  const std::string other = folder_.path("other");
  fs::copy(run, other, fs::copy_options::recursive);
  resume(run, 2);
  expect_same_run(run, whole);
  replace_setting(other, "expert_parallel = 2", "expert_parallel = 1");
  resume(other, 1);
  expect_same_run(other, whole);
}

TEST_F(CheckpointParts, ADividedOptimizerGoesOnWithAnotherNumberOfRanks) {
  const std::vector<std::string> settings{"train.epochs=8", "dist.shard_optimizer=true"};
  const std::string whole = train("whole", 1, joined(settings, {"train.accumulate=6"})),
                    run = stop("run", 2, joined(settings, joined(kInParts, {"train.accumulate=3"})));
  resume(run, 3);
  expect_same_run(run, whole);
}

// From parts to one file, and from one file to parts.
TEST_F(CheckpointParts, TheFormMayChange) {
  const std::vector<std::string> settings{"train.epochs=8"};
  const std::string whole = train("whole", 2, settings), parts = stop("parts", 2, joined(settings, kInParts)),
                    one = stop("one", 2, settings);
  replace_setting(parts, "checkpoint_parts = true", "checkpoint_parts = false");
  resume(parts, 2);
  expect_same_run(parts, whole);
  EXPECT_TRUE(fs::exists(file(parts, "last")) && !fs::exists(part_index(file(parts, "last"))));
  EXPECT_TRUE(find_parts(file(parts, "last")).empty());
  replace_setting(one, "checkpoint_parts = false", "checkpoint_parts = true");
  resume(one, 2);
  expect_same_run(one, whole);
  EXPECT_TRUE(!fs::exists(file(one, "last")) && fs::exists(part_index(file(one, "last"))));
}

// All ranks die at once, at moments that nobody has chosen. Each time the checkpoint of some step is whole.
TEST_F(CheckpointParts, AKilledRunHasACompleteCheckpoint) {
  const std::vector<std::string> settings =
      joined(kExact, joined(kInParts, {"train.epochs=12", "train.checkpoint_every=1", "dist.expert_parallel=2"}));
  const std::string whole = train("whole", 2, settings), run = folder_.path("killed");
  int64_t step = 0;
  for (int64_t kills = 0; kills < 4; ++kills) {
    Program going(kills == 0
                      ? command(run, 2, settings)
                      : std::vector<std::string>{"train", "--resume", run, "--processes", "2", "--max-restarts", "0"});
    ASSERT_TRUE(wait_until([&] { return saved_step(run) >= step + 2 + kills; }));
    for (const int64_t rank : {kills % 2, 1 - kills % 2}) kill_rank(run, rank);
    EXPECT_NE(going.wait().exit_code, 0);
    const Checkpoint saved = read_checkpoint(last_checkpoint(run));
    EXPECT_GE(saved.state["progress"]["step"].get<int64_t>(), step + 2 + kills);
    step = saved.state["progress"]["step"].get<int64_t>();
  }
  resume(run, 2);
  expect_same_run(run, whole);
  EXPECT_EQ(find_parts(file(run, "last")).size(), 2u);
}

TEST_F(CheckpointParts, OverwritingRemovesThem) {
  const std::string run = train("run", 2, joined(kInParts, {"train.max_steps=2"}));
  std::vector<std::string> again = command(run, 0, {"train.max_steps=2"});
  again.emplace_back("--overwrite");
  EXPECT_EQ(run_program(again).exit_code, 0);
  EXPECT_TRUE(find_parts(file(run, "last")).empty() && find_parts(file(run, "best")).empty());
  EXPECT_TRUE(fs::exists(file(run, "last")) && !fs::exists(part_index(file(run, "last"))));
}

TEST_F(CheckpointParts, ARankThatDoesNotSeeTheFolderIsNamed) {
  std::vector<std::unique_ptr<Program>> ranks;
  for (const char* const rank : {"0", "1"})
    ranks.push_back(std::make_unique<Program>(
        command(folder_.path(std::string("run") + rank), 0, kInParts),
        ProgramOptions{
            .environment = {{"RANK", rank}, {"WORLD_SIZE", "2"}, {"SPARSIGHT_STORE", folder_.path("store")}}}));
  for (const auto& rank : ranks) {
    const ProgramResult result = rank->wait();
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.err.find("rank 1 does not see the checkpoints of rank 0"), std::string::npos) << result.err;
  }
}

}  // namespace sparsight::testing::checkpoint_parts_test
