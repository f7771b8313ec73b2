// The avx512 level, chosen on CPUs with AVX-512 F, BW, DQ, VL and VNNI but without AVX512-BF16: vectors of 16 floats.
// The faster levels use it too, where they have nothing better. Compiled with its own flags: see ops/sources.cmake.
#include "sparsight/ops/cpu/vectors_avx512_inl.h"

#include "sparsight/ops/cpu/kernels_inl.h"

namespace sparsight::cpu {
namespace {

constexpr Kernels kTable = make_kernels<Vec>();

}  // namespace

const Kernels& kernels_avx512() { return kTable; }

}  // namespace sparsight::cpu
