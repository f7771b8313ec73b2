// The neon level, which every 64-bit Arm CPU has: vectors of four floats with fused multiply-add. The faster levels use
// it too, where they have nothing better. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/isa/vectors_neon_inl.h"

#include "sparsight/kernels/isa/aarch64.h"
#include "sparsight/kernels/isa/level_inl.h"

namespace sparsight::cpu {
namespace {

constexpr Kernels kTable = make_kernels<Vec>();
constexpr TrainingKernels kTrainingTable = make_training_kernels<Vec>();

}  // namespace

const Kernels& kernels_neon() { return kTable; }
const TrainingKernels& training_kernels_neon() { return kTrainingTable; }

}  // namespace sparsight::cpu
