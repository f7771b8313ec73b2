// What the program knows about itself and the machine it runs on.
#pragma once

#include <cstdint>
#include <string>

namespace sparsight {

std::string compiler_name();  // "g++ 12.2.0"
std::string torch_version();  // of the headers it was built with
// The best instruction set that torch's kernels use here: "DEFAULT", "AVX2", "AVX512", ...
std::string instruction_set();
// Whether bf16 matrix products run in hardware (AVX-512 BF16 or AMX).
bool has_fast_bfloat16();
int64_t available_memory_bytes();  // 0 if unknown

}  // namespace sparsight
