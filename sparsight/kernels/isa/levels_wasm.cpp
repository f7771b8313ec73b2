#include "sparsight/kernels/isa/level.h"
#include "sparsight/kernels/isa/wasm.h"

namespace sparsight::cpu {
namespace {

// An engine without vectors does not load the module at all, so each has both. No multiply-add is fused.
constexpr Level kLevels[] = {
    {"baseline", [] { return true; }, kernels_baseline, false},
    {"simd128", [] { return true; }, kernels_simd128, false},
};
constexpr TrainingTable kTraining[] = {training_kernels_baseline, training_kernels_simd128};
static_assert(std::size(kTraining) == std::size(kLevels));

}  // namespace

std::span<const Level> levels() { return kLevels; }
std::span<const TrainingTable> training_tables() { return kTraining; }

}  // namespace sparsight::cpu
