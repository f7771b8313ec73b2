// Architectures without levels of their own.
#include "sparsight/kernels/isa/level.h"

namespace sparsight::cpu {
namespace {

constexpr Level kLevels[] = {{"baseline", [] { return true; }, kernels_baseline, false}};
constexpr TrainingTable kTraining[] = {training_kernels_baseline};
static_assert(std::size(kTraining) == std::size(kLevels));

}  // namespace

std::span<const Level> levels() { return kLevels; }
std::span<const TrainingTable> training_tables() { return kTraining; }

}  // namespace sparsight::cpu
