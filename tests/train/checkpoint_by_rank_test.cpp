// Checkpoints that ranks write together. tests/e2e/checkpoint_parts_test.cpp has those of trainings.
#include "sparsight/train/checkpoint_by_rank.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include <ATen/ops/full.h>
#include <torch/nn/module.h>

#include "sparsight/core/error.h"
#include "sparsight/dist/join.h"
#include "sparsight/io/part_files.h"
#include "tests/dist/ranks.h"

namespace sparsight::checkpoint_by_rank_test {
namespace {

using test::none_failed, test::run_ranks;

// What a rank has of a model without experts whose optimiser is divided: the weights, and the state of one parameter.
Checkpoint of_rank(int64_t rank, double value) {
  const std::string own(1, static_cast<char>('a' + rank));
  return {.weights = {{"a", at::full({2}, value)}, {"b", at::full({3}, value)}},
          .training = {{"optimizer/" + own + "/exp_avg", at::full({2 + rank}, value)},
                       {"optimizer/" + own + "/exp_avg_sq", at::full({2 + rank}, value)},
                       {"ema/a", at::full({2}, value)}},
          .config = Json::object(),
          .state = {{"step", value}}};
}

std::vector<std::string> write(
    const std::string& path, double value,
    const std::function<void(Checkpoint&, int64_t)>& change = [](Checkpoint&, int64_t) {}) {
  return run_ranks(2, [&](const dist::GroupPtr& group) {
    Checkpoint checkpoint = of_rank(group->rank(), value);
    change(checkpoint, group->rank());
    const torch::nn::Module no_experts;
    write_checkpoint_by_rank(path, checkpoint, SpreadParameters(no_experts), *group);
  });
}

std::vector<std::string> names(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

class CheckpointByRank : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!dist::is_available()) GTEST_SKIP() << "built without gloo";
  }
  std::string last() const { return folder_.path("last.safetensors"); }
  std::string part(int64_t write, int64_t rank) const { return folder_.path(part_name(last(), write, rank, 2)); }
  double saved() const { return read_checkpoint(part_index(last())).state.at("step").get<double>(); }

  testing::TemporaryFolder folder_;
};

}  // namespace

TEST_F(CheckpointByRank, HasTheTensorsOfAllRanksInTheOrderOfOneProcess) {
  folder_.write("last.safetensors", "of one process, and older");
  EXPECT_TRUE(none_failed(write(last(), 1)));
  const Checkpoint read = read_checkpoint(part_index(last()));
  EXPECT_EQ(names(read.weights), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(read.training),
            (std::vector<std::string>{"optimizer/a/exp_avg", "optimizer/b/exp_avg", "optimizer/a/exp_avg_sq",
                                      "optimizer/b/exp_avg_sq", "ema/a"}));
  EXPECT_EQ(read.training[1].second.size(0), 3);
  EXPECT_EQ(read.state.at("step"), 1.0);
  EXPECT_FALSE(std::filesystem::exists(last()));
  EXPECT_EQ(names(read_safetensors(part(1, 1)).tensors),  // what only rank 1 has
            (std::vector<std::string>{"training/optimizer/b/exp_avg", "training/optimizer/b/exp_avg_sq"}));
}

// The state of the disk when all ranks are killed before the index is renamed.
TEST_F(CheckpointByRank, WithoutANewIndexTheOldOneIsWhole) {
  EXPECT_TRUE(none_failed(write(last(), 1)));
  std::filesystem::copy(part(1, 0), part(2, 0));
  folder_.write(part_name(last(), 2, 1, 2) + ".17-0.tmp", "cut");
  EXPECT_EQ(saved(), 1);
  EXPECT_TRUE(none_failed(write(last(), 3)));
  EXPECT_EQ(saved(), 3);
  EXPECT_EQ(find_parts(last()), (std::vector<std::string>{part(3, 0), part(3, 1)}));
  EXPECT_FALSE(std::filesystem::exists(part(2, 1) + ".17-0.tmp"));
}

TEST_F(CheckpointByRank, ARankThatCannotWriteIsNamedByAllAndTheOldOneStays) {
  EXPECT_TRUE(none_failed(write(last(), 1)));
  const auto spoil = [](Checkpoint& checkpoint, int64_t rank) {
    if (rank == 1) checkpoint.training.push_back(checkpoint.training.front());  // one name twice
  };
  for (const std::string& error : write(last(), 2, spoil))
    EXPECT_TRUE(error.starts_with("rank 1 could not write its part of the checkpoint: cannot write ")) << error;
  EXPECT_EQ(saved(), 1);
}

}  // namespace sparsight::checkpoint_by_rank_test
