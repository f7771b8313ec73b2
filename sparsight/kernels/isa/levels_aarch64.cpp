#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "sparsight/kernels/isa/aarch64.h"
#include "sparsight/kernels/isa/level.h"

namespace sparsight::cpu {
namespace {

bool has_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
bool has_bf16() { return has_dotprod() && (getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0; }
bool has_i8mm() { return has_bf16() && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }

// Only neon is a chain: the levels above it multiply packed weights in an order of their own.
constexpr Level kLevels[] = {
    {"baseline", [] { return true; }, kernels_baseline, false},
    // Every CPU of this architecture has it, with fused multiply-add.
    {"neon", [] { return true; }, kernels_neon, true},
    {"neon_dotprod", has_dotprod, kernels_neon_dotprod, false},
    {"neon_bf16", has_bf16, kernels_neon_bf16, false},
    {"neon_i8mm", has_i8mm, kernels_neon_i8mm, false},
};
constexpr TrainingTable kTraining[] = {training_kernels_baseline, training_kernels_neon, training_kernels_neon,
                                       training_kernels_neon_bf16, training_kernels_neon_bf16};
static_assert(std::size(kTraining) == std::size(kLevels));

}  // namespace

std::span<const Level> levels() { return kLevels; }
std::span<const TrainingTable> training_tables() { return kTraining; }

}  // namespace sparsight::cpu
