#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sparsight/io/checkpoint.h"
#include "sparsight/io/metrics_log.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::early_stop_test {
namespace {

namespace fs = std::filesystem;

TEST(Train, StopsEarlyWhenPatienceIsUsedUp) {
  TemporaryFolder folder;
  const std::string run = folder.path("run");
  // A rate of 0 never improves on the first evaluation.
  ASSERT_EQ(train_tiny(folder, run, {"--set", "optimizer.lr=0", "--set", "train.patience=2"}).exit_code, 0);
  EXPECT_EQ(read_checkpoint(run + "/checkpoints/last.safetensors").state.at("progress").at("step"), 8 * 3);
  fs::remove(run + "/done");  // as if it had been killed at its end
  ASSERT_EQ(run_program({"train", "--resume", run}).exit_code, 0);
  int64_t notes = 0;
  for (const Json& line : read_metrics(run + "/metrics.jsonl"))
    notes += line.value("text", "") == "stopped early: patience exhausted";
  EXPECT_EQ(notes, 1);
}

}  // namespace
}  // namespace sparsight::testing::early_stop_test
