#include "cli/cmd_version.h"

#include <cstdlib>
#include <string>

#include "cli/front/start_full_program.h"

namespace sparsight::cli {
namespace {

// What at::get_cpu_capability() says, or "" where only libtorch knows.
std::string known_instruction_set() {
#if defined(__x86_64__)
  if (std::getenv("ATEN_CPU_CAPABILITY")) return "";
  const bool fma = __builtin_cpu_supports("fma");
  if (fma && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return "AVX512";
  if (fma && __builtin_cpu_supports("avx2")) return "AVX2";
#endif
  return "";
}

}  // namespace

void run_version() {
  const std::string instruction_set = known_instruction_set();
  if (instruction_set.empty()) start_full_program();
  print_version(SPARSIGHT_TORCH_VERSION, instruction_set);
}

}  // namespace sparsight::cli
