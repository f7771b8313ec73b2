#include <gtest/gtest.h>

#include "sparsight/core/error.h"
#include "sparsight/kernels/isa/isa.h"

namespace sparsight {

TEST(LevelsOfWasm, AreTwoWithoutFusedMultiplyAdd) {
  EXPECT_EQ(isa_names(), (std::vector<std::string>{"baseline", "simd128"}));
  EXPECT_EQ(active_isa(), "simd128");
  EXPECT_THROW(set_arithmetic("consistent"), UsageError);
  EXPECT_FALSE(consistent_arithmetic());
}

}  // namespace sparsight
