#include "sparsight/io/checkpoint.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "sparsight/core/error.h"
#include "tests/support/errors.h"
#include "tests/support/small_disk.h"

namespace sparsight::checkpoint_test {
namespace {

Checkpoint example(int64_t step, int64_t size = 3) {
  Checkpoint checkpoint;
  // Filled by hand: a forked child must not enter torch's thread pool.
  const at::Tensor weight = at::empty({size});
  std::fill_n(weight.data_ptr<float>(), size, static_cast<float>(step));
  checkpoint.weights = {{"head.weight", weight}};
  checkpoint.training = {{"optimizer/head.weight/exp_avg", at::full({2}, 0.5)}};
  checkpoint.config = {{"train", {{"lr", 0.1}}}};
  checkpoint.state = {{"step", step}, {"best", 1.0 / 3}};
  return checkpoint;
}

std::string write_with(const testing::TemporaryFolder& folder, const std::string& key, const std::string& value) {
  write_checkpoint(folder.path("a"), example(1));
  TensorFile file = read_safetensors(folder.path("a"));
  file.metadata[key] = value;
  write_safetensors(folder.path("a"), file);
  return testing::error_text([&] { read_checkpoint(folder.path("a")); });
}

}  // namespace

TEST(Checkpoint, RoundTrips) {
  const testing::TemporaryFolder folder;
  const Checkpoint written = example(7);
  write_checkpoint(folder.path("a"), written);
  const Checkpoint read = read_checkpoint(folder.path("a"));
  EXPECT_EQ(read.config, written.config);
  EXPECT_EQ(read.state, written.state);  // bit-equal doubles
  ASSERT_EQ(read.weights.size(), 1u);
  ASSERT_EQ(read.training.size(), 1u);
  EXPECT_EQ(read.weights[0].first, "head.weight");
  EXPECT_EQ(read.training[0].first, "optimizer/head.weight/exp_avg");
  EXPECT_TRUE(at::equal(read.training[0].second, written.training[0].second));
  EXPECT_TRUE(read_checkpoint(folder.path("a"), CheckpointParts::kInference).training.empty());
}

TEST(Checkpoint, InferenceReadsAveragesAndNoOptimizer) {
  const testing::TemporaryFolder folder;
  Checkpoint written = example(7);
  written.training.emplace_back("ema/head.weight", at::full({2}, 0.5));
  write_checkpoint(folder.path("a"), written);
  const Checkpoint read = read_checkpoint(folder.path("a"), CheckpointParts::kInference);
  EXPECT_EQ(read.weights.size(), 1u);
  ASSERT_EQ(read.training.size(), 1u);
  EXPECT_EQ(read.training[0].first, "ema/head.weight");
  EXPECT_TRUE(at::equal(read.training[0].second, written.training[1].second));
}

TEST(Checkpoint, OtherVersionsAndFilesAreRefused) {
  const testing::TemporaryFolder folder;
  EXPECT_NE(write_with(folder, "version", "3").find("version 3, newer than the 2"), std::string::npos);
  for (const char* version : {"", "0", "one", "-1", "1.5", "99999999999999"})
    EXPECT_NE(write_with(folder, "version", version).find("is damaged"), std::string::npos) << version;
  EXPECT_NE(write_with(folder, "format", "pt").find("not a sparsight checkpoint"), std::string::npos);
  EXPECT_NE(write_with(folder, "state", "{").find("state is missing or damaged"), std::string::npos);
  EXPECT_NE(write_with(folder, "config", "[]").find("config is missing or damaged"), std::string::npos);
  std::string deep = "{\"a\":";  // whose copy would overflow the stack
  for (int i = 0; i < 17; ++i) deep += deep;
  EXPECT_NE(write_with(folder, "state", deep + "1" + std::string(1 << 17, '}')).find("state is missing or damaged"),
            std::string::npos);
}

// The child writes checkpoints of 4 MB without pause, so that it is killed in the middle of one nearly every time. It
// has longer where it is too slow for two.
TEST(Checkpoint, AKilledWriterLeavesTheEarlierOneWhole) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path("last.safetensors");
  write_checkpoint(path, example(0, 1 << 20));
  int interrupted = 0;
  int64_t last_step = 0;
  for (int round = 0; round < 12 || (round < 60 && last_step <= 1); ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0)
      for (int64_t step = 1;; ++step) write_checkpoint(path, example(step, 1 << 20));
    std::this_thread::sleep_for(std::chrono::milliseconds(11 + 7 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const Checkpoint checkpoint = read_checkpoint(path);
    const at::Tensor& weights = checkpoint.weights[0].second;
    EXPECT_TRUE(at::equal(weights, at::full({1 << 20}, checkpoint.state["step"].get<double>())));
    last_step = std::max(last_step, checkpoint.state["step"].get<int64_t>());
    if (testing::count_entries(folder) > 1) ++interrupted;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      if (entry.path().extension() == ".tmp") std::filesystem::remove(entry.path());
  }
  EXPECT_GT(interrupted, 0);  // otherwise no write was interrupted and nothing was tested
  EXPECT_GT(last_step, 1);
}

}  // namespace sparsight::checkpoint_test
