// The verb dg: speed and memory of runs.
#include <gtest/gtest.h>

#include "tests/e2e/dg_verb.h"

namespace sparsight::testing::dg_verb_test {

// Every update takes 8 images of each of three environments. Memory of the whole run never falls, and has that of its
// evaluations.
TEST_F(DgVerb, G56_ARunSaysItsSpeedAndMemory) {
  const ProgramResult ended = dg(std::string("train --test-envs 1") + kSmall, {"--out", at("timed")});
  ASSERT_EQ(ended.exit_code, 0) << ended.err;
  double peak = 0;
  for (const Json& line : results(at("timed"))) {
    EXPECT_NEAR(line.at("step_time").get<double>() * line.at("images_per_s").get<double>(), 24, 1e-6) << line;
    EXPECT_GT(line.at("step_time").get<double>(), 0);
    EXPECT_GT(line.at("eval_images_per_s").get<double>(), 0);
    EXPECT_GT(line.at("eval_mem_gb").get<double>(), 0.01);
    EXPECT_GE(line.at("mem_gb").get<double>(), line.at("eval_mem_gb").get<double>());
    EXPECT_GE(line.at("mem_gb").get<double>(), peak);
    peak = line.at("mem_gb").get<double>();
  }
  EXPECT_LT(peak, 16);
  EXPECT_NE(ended.out.find(" s per step ("), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" images/s), evaluation "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" images/s, peak memory "), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find(" GB in evaluation)\n"), std::string::npos) << ended.out;
  const ProgramResult table = run_program({"dg", "table", at("timed")});
  EXPECT_NE(table.out.find("folder, time and memory, means over runs"), std::string::npos) << table.out;
  EXPECT_NE(
      table.out.find("| s per step | images/s | evaluation images/s | peak GB | evaluation peak GB | parameters |"),
      std::string::npos)
      << table.out;
}

// A process that only evaluates: images per second, and its own memory.
TEST_F(DgVerb, G56_InferenceHasSpeedAndMemoryToo) {
  ASSERT_EQ(dg(std::string("train --test-envs 1") + kSmall, {"--out", at("evaluated")}).exit_code, 0);
  const ProgramResult json = run_program({"eval", at("evaluated"), "--json", "--quiet"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json line = Json::parse(json.out);
  EXPECT_NEAR(line.at("images_per_s").get<double>() * line.at("seconds").get<double>(), line.at("images").get<double>(),
              1e-6);
  EXPECT_GT(line.at("peak_memory_mb").get<double>(), 10);
  const ProgramResult text = run_program({"eval", at("evaluated"), "--quiet"});
  EXPECT_NE(text.out.find(" images/s, peak memory "), std::string::npos) << text.out;
}

}  // namespace sparsight::testing::dg_verb_test
