#include "sparsight/ops/torch_arithmetic.h"

#include <cstdlib>

#include "sparsight/kernels/isa/arithmetic.h"

namespace sparsight {

void hold_torch_to_arithmetic() {
  if (!consistent_arithmetic()) return;
  setenv("ATEN_CPU_CAPABILITY", "avx2", /*overwrite=*/0);
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", /*overwrite=*/0);
  setenv("MKL_CBWR", "COMPATIBLE", /*overwrite=*/0);
}

}  // namespace sparsight
