// Torch's own operations under consistent arithmetic (kernels/isa/arithmetic.h).
#pragma once

namespace sparsight {

// With consistent arithmetic, makes torch, oneDNN and MKL use the instructions that every CPU with AVX2 has, unless
// their own variables say otherwise (ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA, MKL_CBWR); else does nothing. They read
// these when they first compute, so it must be called before.
void hold_torch_to_arithmetic();

}  // namespace sparsight
