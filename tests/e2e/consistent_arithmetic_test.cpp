// SPARSIGHT_ARITHMETIC=consistent: a training has the same bits whatever instructions the CPU has.
#include <gtest/gtest.h>

#include <set>

#include "sparsight/io/checkpoint.h"
#include "sparsight/kernels/isa/isa.h"
#include "tests/e2e/train_fixture.h"

namespace sparsight::testing::consistent_arithmetic_test {
namespace {

NamedTensors trained(const TemporaryFolder& folder, const std::string& level, const std::string& arithmetic) {
  const std::string run = folder.path(level + "_" + arithmetic);
  const ProgramResult result =
      run_program({"train", tiny_config(folder), "--set", "train.max_steps=20", "--out", run},
                  {.input = "", .environment = {{"SPARSIGHT_ISA", level}, {"SPARSIGHT_ARITHMETIC", arithmetic}}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_checkpoint(run + "/checkpoints/last.safetensors").weights;
}

bool same_bits(const NamedTensors& a, const NamedTensors& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.equal(y.second);
         });
}

}  // namespace

TEST(ConsistentArithmetic, ATrainingHasTheSameBitsAtEveryLevel) {
  const std::vector<std::string> levels = isa_names();
  if (levels.size() < 3) GTEST_SKIP() << "needs two levels with fused multiply-add";
  const TemporaryFolder folder;
  const NamedTensors avx2 = trained(folder, "avx2", "consistent");
  for (const std::string& level : std::set<std::string>{"avx512", levels.back()})
    EXPECT_TRUE(same_bits(avx2, trained(folder, level, "consistent"))) << level;
  EXPECT_FALSE(same_bits(trained(folder, "avx2", "fast"), trained(folder, levels.back(), "fast")))
      << "without it, too: nothing is tested here";
}

TEST(ConsistentArithmetic, AnUnknownNameIsAnErrorOfOneLine) {
  const ProgramResult result =
      run_program({"doctor"}, {.input = "", .environment = {{"SPARSIGHT_ARITHMETIC", "exact"}}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.err, "error: there is no arithmetic \"exact\"; set SPARSIGHT_ARITHMETIC to fast or consistent\n");
}

}  // namespace sparsight::testing::consistent_arithmetic_test
