// The instruction-set levels that the CPU kernels are compiled for, and the one in use. Each level has its own source
// files with its own compiler flags; nothing outside them uses its instructions.
#pragma once

#include <string>
#include <vector>

namespace sparsight {

// avx2 includes FMA; avx512: F, BW, DQ, VL and VNNI; avx512_bf16: with BF16; amx: with tiles of bf16 and int8 too,
// which multiply packed weights and, with each fp32 number split into three of bf16 (bf16x3), fp32 weights.
enum class Isa { baseline, avx2, avx512, avx512_bf16, amx };

// "baseline", "avx2", "avx512", "avx512_bf16", "amx", from the slowest to the fastest that this CPU has.
std::vector<std::string> isa_names();

// The level in use: the environment variable SPARSIGHT_ISA (read once) or else the fastest of this CPU.
Isa active_isa();
const std::string& isa_name(Isa isa);

// Chooses a level by name, for tests and measurements; "" goes back to the default. Raises UsageError for a level that
// is unknown or that this CPU lacks. Not while kernels are running.
void set_isa(const std::string& name);

}  // namespace sparsight
