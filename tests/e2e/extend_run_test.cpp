// Finished runs that are trained for more epochs.
#include <gtest/gtest.h>

#include <filesystem>

#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/report/run/run_metrics.h"
#include "tests/e2e/saved_run.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::extend_run_test {
namespace {

namespace fs = std::filesystem;

class ExtendRun : public ::testing::Test {
 protected:
  // With a rate that does not depend on the length: more epochs are then those that a longer run has.
  std::string trained(const std::string& name, int64_t epochs) {
    const ProgramResult result = train_tiny(folder_, folder_.path(name),
                                            {"--set", "schedule.name=constant", "--set", cat("train.epochs=", epochs)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder_.path(name);
  }
  static ProgramResult extended(const std::string& run, const std::string& epochs) {
    return run_program({"train", "--resume", run, "--set", "train.epochs=" + epochs});
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_F(ExtendRun, HasTheBitsOfARunOfThatLength) {
  const std::string run = trained("run", 1), longer = trained("longer", 3);
  for (const char* more : {"+1", "+1"}) {
    const ProgramResult result = extended(run, more);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const Checkpoint one = read_checkpoint(last_checkpoint(run)), other = read_checkpoint(last_checkpoint(longer));
  EXPECT_EQ(one.state["progress"]["step"], other.state["progress"]["step"]);
  expect_equal_tensors(one.weights, other.weights);
  expect_equal_tensors(one.training, other.training);
  EXPECT_EQ(read_file(run + "/config.toml", size_t{1} << 20), read_file(longer + "/config.toml", size_t{1} << 20));
  const Json record = parse_checked_object(read_file(run + "/extensions.json", size_t{1} << 20), "extensions.json");
  EXPECT_EQ(record.dump(), R"({"extensions":[{"from":1,"to":2},{"from":2,"to":3}]})");
  const RunMetrics log = read_run_metrics(run + "/metrics.jsonl");
  EXPECT_EQ(log.done["step"], other.state["progress"]["step"]);
  EXPECT_TRUE(fs::exists(run + "/done"));
}

// The run was killed after it wrote its new configuration and before it went on.
TEST_F(ExtendRun, AnInterruptedExtensionIsNotMadeTwice) {
  const std::string run = trained("run", 1), copy = folder_.path("copy");
  fs::copy(run, copy, fs::copy_options::recursive);
  ASSERT_EQ(extended(copy, "+1").exit_code, 0);
  for (const char* file : {"/config.toml", "/extensions.json"})
    fs::copy_file(copy + file, run + file, fs::copy_options::overwrite_existing);
  const ProgramResult again = extended(run, "+1");
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("being extended to 2 epochs"), std::string::npos) << again.err;
  expect_same_run(run, copy);

  fs::remove(run + "/done");  // killed later: either command goes on
  EXPECT_EQ(extended(run, "+1").exit_code, 0);
  EXPECT_EQ(read_file(run + "/config.toml", size_t{1} << 20), read_file(copy + "/config.toml", size_t{1} << 20));
}

TEST_F(ExtendRun, SaysWhatCannotBeExtended) {
  const std::string run = trained("run", 1);
  for (const char* epochs : {"5", "+0", "+-1", "+1.5", "+99999999999999999999"}) {
    const ProgramResult refused = extended(run, epochs);
    EXPECT_EQ(refused.exit_code, 2) << epochs;
    EXPECT_NE(refused.err.find("train.epochs=+N, for more epochs of a finished run"), std::string::npos) << refused.err;
  }
  EXPECT_NE(extended(run, "+1000000").err.find("at most 1000000 epochs, and this one would have 1000001"),
            std::string::npos);
  write_file_atomically(run + "/extensions.json", "{\"extensions\": 3}");
  EXPECT_NE(extended(run, "+1").err.find("has no list \"extensions\""), std::string::npos);
  fs::remove(run + "/extensions.json");
  fs::remove(run + "/done");
  EXPECT_NE(extended(run, "+1").err.find("is not finished; resume it to its end"), std::string::npos);

  const std::string bounded = folder_.path("bounded");
  ASSERT_EQ(train_tiny(folder_, bounded, {"--set", "train.max_steps=2"}).exit_code, 0);
  EXPECT_NE(extended(bounded, "+1").err.find("ends with train.max_steps = 2"), std::string::npos);
  EXPECT_FALSE(fs::exists(bounded + "/extensions.json"));
}

}  // namespace sparsight::testing::extend_run_test
