#include "sparsight/kernels/isa/level.h"
#include "sparsight/kernels/isa/wasm.h"

namespace sparsight::cpu {
namespace {

// An engine without vectors does not load the module at all, so each has both. No multiply-add is fused.
constexpr Level kLevels[] = {
    {"baseline", [] { return true; }, kernels_baseline, false},
    {"simd128", [] { return true; }, kernels_simd128, false},
};

}  // namespace

std::span<const Level> levels() { return kLevels; }

}  // namespace sparsight::cpu
