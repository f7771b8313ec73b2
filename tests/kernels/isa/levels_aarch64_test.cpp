// Whether this CPU's levels are those of its feature registers, which Linux lets a process read.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/kernels/isa/isa.h"

namespace sparsight {
namespace {

// Four bits, which are 0 where the feature is missing.
bool has_feature(uint64_t feature_register, int first_bit) { return (feature_register >> first_bit & 15) != 0; }

}  // namespace

TEST(LevelsOfAarch64, AreThoseOfTheFeatureRegisters) {
  uint64_t first = 0, second = 0;  // ID_AA64ISAR0_EL1: DP, and ID_AA64ISAR1_EL1: BF16 and I8MM
  asm("mrs %0, s3_0_c0_c6_0" : "=r"(first));
  asm("mrs %0, s3_0_c0_c6_1" : "=r"(second));
  std::vector<std::string> expected{"baseline", "neon"};
  const bool dotprod = has_feature(first, 44), bf16 = dotprod && has_feature(second, 44);
  if (dotprod) expected.emplace_back("neon_dotprod");
  if (bf16) expected.emplace_back("neon_bf16");
  if (bf16 && has_feature(second, 52)) expected.emplace_back("neon_i8mm");
  EXPECT_EQ(isa_names(), expected);
  set_isa("");
  set_arithmetic("");
  EXPECT_EQ(active_isa(), expected.back());
  set_arithmetic("consistent");
  EXPECT_EQ(active_isa(), "neon");
  set_arithmetic("");
}

}  // namespace sparsight
