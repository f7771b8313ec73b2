// The kernels of the fuzz targets: without the other levels, whose files need flags of their own.
#include <cstdlib>
#include <string>

#include "sparsight/kernels/experts/packed_tiles.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/kernels/kernels.h"

namespace sparsight {

std::string active_isa() { return "baseline"; }
bool consistent_arithmetic() { return false; }

const cpu::Kernels& cpu::kernels() { return kernels_baseline(); }
const cpu::TrainingKernels& cpu::training_kernels() { return training_kernels_baseline(); }

// The baseline has no tiles.
void cpu::packed_tiles_forward(Threads&, const ExpertRowNumbers&, const StoredExperts&, const float*, Activation,
                               const float*, float*) {
  std::abort();
}

}  // namespace sparsight
