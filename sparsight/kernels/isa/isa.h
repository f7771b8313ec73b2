// The instruction-set level in use. Levels have their own source files with their own compiler flags; nothing outside
// them uses their instructions, and what differs between them is in their tables (kernels.h).
#pragma once

#include <string>
#include <vector>

#include "sparsight/kernels/isa/arithmetic.h"

namespace sparsight {

// The levels that this CPU has, from the slowest to the fastest: on x86-64 "baseline", "avx2" (with FMA), "avx512" (F,
// BW, DQ, VL and VNNI), "avx512_bf16" and "amx" (tiles of bf16 and int8, which multiply packed weights and, with each
// fp32 number split into three of bf16 (bf16x3), fp32 weights); on 64-bit Arm "baseline", "neon", "neon_dotprod" (dot
// products of int8), "neon_bf16" and "neon_i8mm" (products of matrices of int8); in WebAssembly "baseline" and
// "simd128"; elsewhere "baseline".
std::vector<std::string> isa_names();

// The level in use: that of the environment variable SPARSIGHT_ISA (read once) or else the fastest of this CPU; with
// consistent arithmetic the fastest up to it whose products are chains of multiply-adds.
std::string active_isa();

// Chooses a level by name, for tests and measurements; "" goes back to the default. Raises UsageError for a level that
// is unknown or that this CPU lacks. Not while kernels are running.
void set_isa(const std::string& name);

// Chooses an arithmetic (arithmetic.h): "fast", "consistent" or, with "", the default, for tests and measurements.
// Raises UsageError for other names, and for "consistent" on a CPU without fused multiply-add. Not while kernels are
// running.
void set_arithmetic(const std::string& name);

}  // namespace sparsight
