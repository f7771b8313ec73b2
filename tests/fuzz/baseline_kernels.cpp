// The kernels of the fuzz targets: without the other levels, whose files need flags of their own.
#include "sparsight/kernels/kernels.h"

namespace sparsight::cpu {

const Kernels& kernels() { return kernels_baseline(); }

}  // namespace sparsight::cpu
