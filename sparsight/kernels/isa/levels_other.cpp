// Architectures without levels of their own.
#include "sparsight/kernels/isa/level.h"

namespace sparsight::cpu {
namespace {

constexpr Level kLevels[] = {{"baseline", [] { return true; }, kernels_baseline, false}};

}  // namespace

std::span<const Level> levels() { return kLevels; }

}  // namespace sparsight::cpu
