// Every algorithm that says that processes may share out its minibatches has the bits of one process.
#include <gtest/gtest.h>

#include <csignal>

#include "sparsight/dg/algorithms/register_domain_algorithms.h"
#include "sparsight/dist/join.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::rank_algorithms_test {
namespace {

// All of the program's algorithms: whether they take ranks, and why not.
std::map<std::string, AlgorithmFacts> all_facts() {
  std::map<std::string, AlgorithmFacts> facts;
  AlgorithmRegistry domains("algorithm");
  register_domain_algorithms(domains);
  for (const AlgorithmRegistry* const list : {&domains, &algorithms()})
    for (const std::string& name : list->names()) facts[name] = list->facts(name);
  return facts;
}

std::vector<std::string> names_with_ranks() {
  std::vector<std::string> names;
  for (const auto& [name, facts] : all_facts())
    if (facts.takes_ranks) names.push_back(name);
  return names;
}

// The lines of metrics.jsonl without times, rates and memory.
std::vector<Json> lines(const std::string& run) {
  std::vector<Json> all = read_metrics(run + "/metrics.jsonl");
  for (Json& json : all) {
    for (const char* const key : {"seconds", "images_per_s", "peak_memory_mb", "time"}) json.erase(key);
    if (json.contains("training"))
      for (const char* const key : {"step_seconds", "images_per_s", "peak_memory_mb"}) json["training"].erase(key);
  }
  return all;
}

constexpr int64_t kBatches = 6;  // of a step

class RankAlgorithms : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  }

  std::vector<std::string> arguments(int64_t processes, std::vector<std::string> settings) const {
    settings.push_back("algorithm.name=" + GetParam());
    settings.push_back("train.accumulate=" + std::to_string(kBatches / processes));
    std::vector<std::string> all{"--processes", std::to_string(processes), "--max-restarts", "0"};
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    return all;
  }

  // Returns the run's folder.
  std::string train(const std::string& name, int64_t processes, const std::vector<std::string>& settings) {
    const ProgramResult result = train_tiny(folder_, folder_.path(name), arguments(processes, settings));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_.path(name);
  }

  TemporaryFolder folder_;
};

// Random numbers per image in the routers, and a last batch of ten images.
const std::vector<std::string> kShort{"train.max_steps=3", "train.log_every=1",      "loader.batch=16",
                                      "data.train=250",    "loader.drop_last=false", "router.name=noisy_topk",
                                      "losses.load=0.1"};

}  // namespace

TEST_P(RankAlgorithms, HaveTheBitsOfOneProcess) {
  const std::string one = train("one", 1, kShort);
  for (const int64_t ranks : {2, 3}) {
    const std::string several = train(std::to_string(ranks), ranks, kShort);
    expect_same_run(several, one);
    EXPECT_EQ(lines(several), lines(one)) << ranks << " ranks";
  }
}

TEST_P(RankAlgorithms, HaveTheBitsOfOneProcessWithExpertsOverRanks) {
  std::vector<std::string> settings = kShort;
  settings.insert(settings.end(), {"dist.exact=true", "train.clip_norm=0"});
  const std::string one = train("one", 1, settings);
  settings.push_back("dist.expert_parallel=2");
  expect_same_run(train("two", 2, settings), one);
}

TEST_P(RankAlgorithms, GoOnWithAnotherNumberOfRanks) {
  const std::vector<std::string> settings{"train.max_steps=12", "loader.batch=16"};
  const std::string whole = train("whole", 1, settings), run = folder_.path("run");
  std::vector<std::string> command{"train", tiny_config(folder_), "--out", run};
  for (const std::string& argument : arguments(2, settings)) command.push_back(argument);
  Program stopped(command);
  ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 2; }));
  stopped.send(SIGINT);
  ASSERT_EQ(stopped.wait().exit_code, 1);
  const ProgramResult resumed = run_program({"train", "--resume", run, "--processes", "3"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_run(run, whole);
}

INSTANTIATE_TEST_SUITE_P(Registered, RankAlgorithms, ::testing::ValuesIn(names_with_ranks()),
                         [](const auto& test) { return test.param; });

TEST(RankAlgorithmFacts, TheOthersSayWhyTheyNeedOneProcess) {
  const std::string nothing = AlgorithmFacts().one_process;
  int others = 0;
  for (const auto& [name, facts] : all_facts()) {
    if (facts.takes_ranks) continue;
    ++others;
    EXPECT_NE(facts.one_process, nothing) << name;
  }
  EXPECT_GT(others, 0);
}

TEST(RankAlgorithmFacts, ARefusalHasTheReason) {
  if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  const TemporaryFolder folder;
  const ProgramResult result = train_tiny(folder, folder.path("run"),
                                          {"--set", "algorithm.name=fish", "--processes", "2", "--max-restarts", "0"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find("algorithm.name = \"fish\" trains in one process only: " + all_facts()["fish"].one_process +
                            "; train without --processes and torchrun"),
            std::string::npos)
      << result.err;
}

}  // namespace sparsight::testing::rank_algorithms_test
