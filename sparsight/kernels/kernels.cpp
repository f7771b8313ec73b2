#include "sparsight/kernels/kernels.h"

#include "sparsight/kernels/isa/isa.h"

namespace sparsight::cpu {

const Kernels& kernels() {
#if defined(__x86_64__)
  if (active_isa() == Isa::amx) return kernels_amx();
  if (active_isa() == Isa::avx512_bf16) return kernels_avx512_bf16();
  if (active_isa() == Isa::avx512) return kernels_avx512();
  if (active_isa() == Isa::avx2) return kernels_avx2();
#endif
  return kernels_baseline();
}

}  // namespace sparsight::cpu
