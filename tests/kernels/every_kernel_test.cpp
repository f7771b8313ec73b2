// Every kernel of kernels.inc and training_kernels.inc at every level against the plain one, "baseline": with its
// example and nothing else to add here for a new one. What each computes is tested by values in the other tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sparsight/kernels/examples.h"
#include "sparsight/kernels/isa/isa.h"
#include "tests/kernels/consistent_bits.h"
#include "tests/kernels/every_level.h"

namespace sparsight::cpu {
namespace {

class EveryKernel : public ::testing::TestWithParam<KernelExample> {
 protected:
  ~EveryKernel() override {
    set_isa("");
    set_arithmetic("");
  }
};

TEST_P(EveryKernel, AgreesWithThePlainOneAtEveryLevel) {
  const KernelExample& example = GetParam();
  set_isa("baseline");
  example.run();
  const std::vector<float> expected = example.result();
  double largest = 0;
  for (const float value : expected) largest = std::max(largest, static_cast<double>(std::abs(value)));
  ASSERT_GT(largest, 0);
  for (const std::string& level : isa_names()) {
    SCOPED_TRACE(level);
    set_isa(level);
    example.run();
    const std::vector<float> got = example.result();
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], example.tolerance * largest) << i;
    example.run();  // from the same inputs
    EXPECT_EQ(example.result(), got);
  }
}

// The 64-bit FNV-1a hash of the bits of numbers.
uint64_t hash(const std::vector<float>& numbers) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const float number : numbers) sum = (sum ^ std::bit_cast<uint32_t>(number)) * 0x100000001b3;
  return sum;
}

TEST_P(EveryKernel, HasTheStoredBitsAtEveryLevelWithConsistentArithmetic) {
  if (!testing::any_level_fuses()) GTEST_SKIP() << "this CPU has no fused multiply-add";
  const KernelExample& example = GetParam();
  set_arithmetic("consistent");
  for (const std::string& level : isa_names()) {
    if (level == "baseline") continue;
    SCOPED_TRACE(level);
    set_isa(level);
    example.run();
    const uint64_t bits = hash(example.result());
    EXPECT_EQ(bits, consistent_bits().at(example.name)) << example.name << " has 0x" << std::hex << bits;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, ::testing::ValuesIn(kernel_examples()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sparsight::cpu
