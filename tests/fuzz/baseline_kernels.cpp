// The kernels of the fuzz targets: without the other levels, whose files need flags of their own.
#include "sparsight/kernels/isa/arithmetic.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight {

bool consistent_arithmetic() { return false; }

const cpu::Kernels& cpu::kernels() { return kernels_baseline(); }

}  // namespace sparsight
