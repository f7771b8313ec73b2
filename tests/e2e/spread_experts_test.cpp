// Runs whose experts are spread over processes: the results of processes with all experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "sparsight/dist/join.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::spread_experts_test {
namespace {

struct Case {
  std::string name;
  std::vector<std::string> settings;
  double tolerance = 1e-6;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

// The norm of the difference of two tensors, as a part of that of the second.
double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return INFINITY;
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const double difference = (x - y).norm().item<double>();
  return difference == 0 ? 0 : difference / y.norm().item<double>();
}

void expect_close(const NamedTensors& a, const NamedTensors& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_LE(relative_difference(a[i].second, b[i].second), tolerance) << a[i].first;
  }
}

void expect_close_runs(const std::string& a, const std::string& b, double tolerance) {
  const Checkpoint left = read_checkpoint(last_checkpoint(a)), right = read_checkpoint(last_checkpoint(b));
  EXPECT_EQ(left.state["progress"]["step"], right.state["progress"]["step"]);
  expect_close(left.weights, right.weights, tolerance);
  expect_close(left.training, right.training, tolerance);
}

class SpreadExperts : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  }

  std::vector<std::string> arguments(int64_t processes, int64_t parts, const std::vector<std::string>& settings) {
    std::vector<std::string> all{"--processes",    std::to_string(processes),
                                 "--max-restarts", "0",
                                 "--set",          "dist.expert_parallel=" + std::to_string(parts)};
    for (const std::string& setting : settings) all.insert(all.end(), {"--set", setting});
    return all;
  }

  // Returns the run's folder.
  std::string train(const std::string& name, int64_t processes, int64_t parts,
                    const std::vector<std::string>& settings) {
    const ProgramResult result = train_tiny(folder_, folder_.path(name), arguments(processes, parts, settings));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_.path(name);
  }

  TemporaryFolder folder_;
};

}  // namespace

// One step of gradient descent shows the gradients in the weights and in the momentum.
TEST_P(SpreadExperts, S31_S32_AStepIsThatOfProcessesWithAllExperts) {
  std::vector<std::string> settings = GetParam().settings;
  settings.insert(settings.end(),
                  {"train.max_steps=1", "optimizer.name=sgd", "optimizer.momentum=0.9", "optimizer.lr=0.5"});
  const std::string two = train("two", 2, 1, settings);
  expect_close_runs(train("two_spread", 2, 2, settings), two, GetParam().tolerance);
  settings.emplace_back("data.validation=40");  // ranks without images in evaluations
  const std::string four = train("four", 4, 1, settings);
  expect_close_runs(train("four_spread", 4, 2, settings), four, GetParam().tolerance);
}

TEST_P(SpreadExperts, S31_S32_ExactOnesHaveTheBitsOfOneProcess) {
  std::vector<std::string> settings = GetParam().settings;
  settings.insert(settings.end(), {"train.max_steps=3", "train.clip_norm=0", "dist.exact=true", "data.validation=40"});
  const std::string four = train("four", 4, 4, settings);
  expect_same_run(train("pairs", 4, 2, settings), four);
  settings.emplace_back("train.accumulate=" + std::to_string(GetParam().name == "accumulate" ? 8 : 4));
  expect_same_run(train("one", 1, 1, settings), four);
}

INSTANTIATE_TEST_SUITE_P(
    Routers, SpreadExperts,
    ::testing::Values(Case{"top1", {"router.k=1"}}, Case{"noisy", {"router.name=noisy_topk", "losses.load=0.1"}},
                      Case{"expert_choice", {"router.name=expert_choice"}},
                      Case{"per_image", {"router.name=per_image", "router.scope=layer"}},
                      Case{"model_wide", {"router.name=per_image", "moe.blocks=[0,1]"}},
                      Case{"hierarchical", {"router.name=hierarchical", "router.groups=2"}},  // a group per rank
                      Case{"capacity", {"capacity.factor=1", "capacity.group=17"}},
                      Case{"sigmoid_bias", {"router.name=sigmoid_bias"}, 2e-6},  // gates / their sum: small differences
                      Case{"soft_moe", {"router.name=soft_moe"}}, Case{"dropout", {"experts.dropout=0.3"}},
                      Case{"swiglu", {"experts.name=swiglu"}}, Case{"clip", {"train.clip_norm=0.1"}},
                      Case{"accumulate", {"train.accumulate=2"}}, Case{"bf16", {"train.precision=bf16"}, 0.02},
                      Case{"layers", {"moe.blocks=[0]", "moe.layer=[{blocks=[1], experts=8}]", "moe.shared=1"}}),
    [](const auto& test) { return test.param.name; });

TEST_F(SpreadExperts, BeginWithTheWeightsOfOneProcess) {
  const std::vector<std::string> still{"train.max_steps=1", "optimizer.name=sgd", "optimizer.lr=0"};
  const std::string one = train("one", 1, 1, still), two = train("two", 2, 2, still), four = train("four", 4, 4, still);
  const auto weights = [](const std::string& run) { return read_checkpoint(last_checkpoint(run)).weights; };
  expect_equal_tensors(weights(two), weights(one));
  expect_equal_tensors(weights(four), weights(one));
  std::vector<std::string> again = still;
  again.insert(again.end(), {"run.seed=4", "train.init_from=" + last_checkpoint(one)});
  expect_equal_tensors(weights(train("again", 2, 2, again)), weights(one));
  const std::string shards = folder_.path("shards");  // and from several files
  EXPECT_EQ(run_program({"weights", "shard", last_checkpoint(one), "--files", "4", "--out", shards}).exit_code, 0);
  again.back() = "train.init_from=" + shards;
  expect_equal_tensors(weights(train("from_shards", 2, 2, again)), weights(one));
  EXPECT_EQ(run_program({"weights", "merge", shards, "--out", folder_.path("merged.safetensors")}).exit_code, 0);
  expect_equal_tensors(read_checkpoint(folder_.path("merged.safetensors")).training,
                       read_checkpoint(last_checkpoint(one)).training);
}

TEST_F(SpreadExperts, OneProcessReadsTheirCheckpoints) {
  const std::string run = train("run", 2, 2, {"train.epochs=2"});
  const ProgramResult result = run_program({"eval", run, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json evaluated = Json::parse(result.out);
  for (const Json& line : read_metrics(run + "/metrics.jsonl"))
    if (line["kind"] == "eval" && line["split"] == "test" && line.value("reported", true)) {
      EXPECT_EQ(line["accuracy"], evaluated["accuracy"]);
      EXPECT_NEAR(line["loss"].get<double>(), evaluated["loss"].get<double>(), 1e-5);
      EXPECT_EQ(line["touched"], evaluated["touched"]);
    }
}

TEST_F(SpreadExperts, AKilledRankIsStartedAgainAndTheBitsAreThoseOfAnUnbrokenRun) {
  const std::vector<std::string> settings{"train.epochs=30"};
  const std::string whole = train("whole", 2, 2, settings), killed = folder_.path("killed");
  std::vector<std::string> command{"train", tiny_config(folder_), "--out", killed};
  for (const std::string& argument : arguments(2, 2, settings)) command.push_back(argument);
  *std::ranges::find(command, "--max-restarts") = "--max-restarts=3";
  std::erase(command, "0");
  Program run(command);
  ASSERT_TRUE(wait_until([&] { return saved_step(killed) >= 4; }));
  kill_rank(killed, 1);
  const ProgramResult result = run.wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("was killed by signal 9; all ranks start again"), std::string::npos) << result.err;
  expect_same_run(whole, killed);
}

TEST_F(SpreadExperts, ARunGoesOnWithOtherRanksAndOtherParts) {
  const std::vector<std::string> settings{"train.epochs=6", "train.clip_norm=0", "dist.exact=true"};
  const std::string whole = train("whole", 4, 1, settings), run = folder_.path("run");
  std::vector<std::string> command{"train", tiny_config(folder_), "--out", run};
  for (const std::string& argument : arguments(4, 2, settings)) command.push_back(argument);
  Program stopped(command);
  ASSERT_TRUE(wait_until([&] { return saved_step(run) >= 2; }));
  stopped.send(SIGINT);
  ASSERT_EQ(stopped.wait().exit_code, 1);
  const ProgramResult refused = run_program({"train", "--resume", run, "--processes", "1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("dist.expert_parallel = 2 spreads experts over 2 processes, but 1 process trains"),
            std::string::npos)
      << refused.err;
  std::string config = read_file(run + "/config.toml", 1 << 20);
  const std::string before = "expert_parallel = 2";
  ASSERT_NE(config.find(before), std::string::npos);
  config.replace(config.find(before), before.size(), "expert_parallel = 1");
  write_file_atomically(run + "/config.toml", config);
  const ProgramResult resumed = run_program({"train", "--resume", run, "--processes", "1"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  expect_same_run(run, whole);
}

TEST_F(SpreadExperts, WhatCannotBeSpreadSaysWhatToDo) {
  const auto expect_refused = [&](int64_t processes, const std::vector<std::string>& settings, const std::string& why) {
    const ProgramResult result = train_tiny(folder_, folder_.path("refused"), arguments(processes, 2, settings));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  expect_refused(3, {},
                 "dist.expert_parallel = 2 spreads experts over 2 processes, but 3 processes train; use "
                 "--processes 2 or a multiple of it, or set dist.expert_parallel = 1");
  expect_refused(2, {"moe.experts=3"}, "dist.expert_parallel = 2 cannot spread 3 experts equally");
  expect_refused(2, {"optimizer.name=factored_adam", "optimizer.full=[]"},
                 "factored_adam takes blocks.1.mlp.experts.b1 for one matrix of all experts");
  expect_refused(2, {"optimizer.name=muon", "optimizer.others=[]"},
                 "muon takes blocks.1.mlp.experts.b1 for one matrix of all experts");
  expect_refused(2, {"experts.name=conv", "experts.channels=2", "experts.kernel=4", "experts.output=signs"},
                 "the tensor w2 of the experts of blocks.1.mlp is no parameter with one slice per expert");
}

}  // namespace sparsight::testing::spread_experts_test
