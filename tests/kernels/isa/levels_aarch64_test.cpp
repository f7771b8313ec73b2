// Whether this CPU's levels are those of its feature registers, which Linux lets a process read.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/kernels/isa/isa.h"

namespace sparsight {
namespace {

// Bits 47 .. 44, which are 0 where the feature is missing.
unsigned feature_field(uint64_t feature_register) { return feature_register >> 44 & 15; }

}  // namespace

TEST(LevelsOfAarch64, AreThoseOfTheFeatureRegisters) {
  uint64_t first = 0, second = 0;  // ID_AA64ISAR0_EL1: DP, and ID_AA64ISAR1_EL1: BF16
  asm("mrs %0, s3_0_c0_c6_0" : "=r"(first));
  asm("mrs %0, s3_0_c0_c6_1" : "=r"(second));
  std::vector<std::string> expected{"baseline", "neon"};
  if (feature_field(first) != 0) expected.emplace_back("neon_dotprod");
  if (feature_field(first) != 0 && feature_field(second) != 0) expected.emplace_back("neon_bf16");
  EXPECT_EQ(isa_names(), expected);
  set_isa("");
  set_arithmetic("");
  EXPECT_EQ(active_isa(), expected.back());
  set_arithmetic("consistent");
  EXPECT_EQ(active_isa(), "neon");
  set_arithmetic("");
}

}  // namespace sparsight
