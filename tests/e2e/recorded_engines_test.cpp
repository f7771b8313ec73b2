// A training that is resumed where a measurement would choose other engines by now.
#include <signal.h>

#include <gtest/gtest.h>

#include "sparsight/core/input_file.h"
#include "sparsight/nn/onednn_linear.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"
#include "tests/support/engine_rates.h"
#include "tests/support/environment_variable.h"

namespace sparsight::testing::recorded_engines_test {
namespace {

constexpr size_t kMaxCheckpointBytes = size_t{1} << 26;

TEST(RecordedEnginesOfARun, AreUsedAgainAfterAKill) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch lacks oneDNN";
  TemporaryFolder folder;
  const test::EnvironmentVariable cache("XDG_CACHE_HOME", folder.path("cache").c_str()),
      forced("SPARSIGHT_ENGINES", nullptr), level("SPARSIGHT_ISA", nullptr);
  const std::string unbroken = folder.path("unbroken"), killed = folder.path("killed"), other = folder.path("other");
  test::write_engine_rates("50");
  ASSERT_EQ(train_tiny(folder, unbroken).exit_code, 0);
  Program program({"train", tiny_config(folder), "--out", killed});
  ASSERT_TRUE(wait_until([&] { return saved_step(killed) >= 4; }));
  program.send(SIGKILL);
  program.wait();

  test::write_engine_rates("200");  // the same machine, measured on another day
  ASSERT_EQ(train_tiny(folder, other).exit_code, 0);
  const auto weights = [](const std::string& run) { return read_file(last_checkpoint(run), kMaxCheckpointBytes); };
  EXPECT_NE(weights(unbroken), weights(other));  // or the choice would not matter

  const ProgramResult resumed = run_program({"train", "--resume", killed});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("the engines that the run began with"), std::string::npos) << resumed.err;
  expect_same_run(unbroken, killed);
}

}  // namespace
}  // namespace sparsight::testing::recorded_engines_test
