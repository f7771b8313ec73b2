// The avx512 level, chosen on CPUs with AVX-512 F, BW, DQ, VL and VNNI but without AVX512-BF16: vectors of 16 floats.
// The faster levels use it too, where they have nothing better. Compiled with its own flags: see kernels/sources.cmake.
#include "sparsight/kernels/isa/vectors_avx512_inl.h"

#include "sparsight/kernels/isa/level_inl.h"
#include "sparsight/kernels/isa/x86_64.h"

namespace sparsight::cpu {
namespace {

constexpr Kernels kTable = make_kernels<Vec>();
constexpr TrainingKernels kTrainingTable = make_training_kernels<Vec>();

}  // namespace

const Kernels& kernels_avx512() { return kTable; }
const TrainingKernels& training_kernels_avx512() { return kTrainingTable; }

}  // namespace sparsight::cpu
