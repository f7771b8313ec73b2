// A vision transformer made without torch: 32 x 32 RGB pixels, patches of 4 x 4, 6 blocks of width 64, the last two
// with 10 experts of which each image gets 2, and 12 classes. Its weights are random, from the seed.
#pragma once

#include "sparsight/engine/program.h"
#include "sparsight/kernels/types.h"

namespace sparsight::test {

constexpr int64_t kVitSide = 32, kVitWidth = 64, kVitExperts = 10, kVitClasses = 12;

engine::Program small_vit(uint64_t seed = 1, WeightType type = WeightType::fp32);

}  // namespace sparsight::test
