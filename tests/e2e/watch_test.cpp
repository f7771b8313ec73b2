// The watch verb beside a training, and afterwards.
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "tests/e2e/output.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::watch_test {
namespace {

TEST(WatchVerb, FollowsARunUntilItIsFinished) {
  const TemporaryFolder folder;
  const std::string run = folder.path("run");
  ProgramResult trained;
  std::thread training([&] { trained = train_tiny(folder, run, {"--set", "train.epochs=30", "--quiet"}); });
  while (!std::filesystem::exists(run + "/metrics.jsonl")) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const ProgramResult followed = run_program({"watch", run, "--every", "0.1"});
  training.join();
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  EXPECT_NE(followed.out.find("finished"), std::string::npos) << followed.out;
  const ProgramResult once = run_program({"watch", run, "--once"});
  EXPECT_NE(once.out.find("epoch 30 of 30"), std::string::npos) << once.out;
  EXPECT_NE(once.out.find("blocks.1.mlp"), std::string::npos) << once.out;
  EXPECT_LE(once.out.size(), followed.out.size());
}

TEST(WatchVerb, RefusesWhatIsNoRun) {
  const TemporaryFolder folder;
  expect_failure(run_program({"watch", folder.path("nowhere")}), 1, "nowhere");
  expect_failure(run_program({"watch", folder.path("nowhere"), "--every", "0"}), 2, "--every");
}

}  // namespace
}  // namespace sparsight::testing::watch_test
