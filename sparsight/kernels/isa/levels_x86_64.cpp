#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sparsight/kernels/isa/level.h"
#include "sparsight/kernels/isa/x86_64.h"

namespace sparsight::cpu {
namespace {

bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

// Linux lets a process use the tile registers only after it has requested them, since they enlarge the saved state of
// its threads.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

bool has_amx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return has_avx512_bf16() && __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kAll) == kAll &&
         may_use_tiles();
}

constexpr Level kLevels[] = {
    {"baseline", [] { return true; }, kernels_baseline, false},
    {"avx2", has_avx2, kernels_avx2, true},
    {"avx512", has_avx512, kernels_avx512, true},
    {"avx512_bf16", has_avx512_bf16, kernels_avx512_bf16, false},
    {"amx", has_amx, kernels_amx, false},
};
// CPUs with AMX multiply pairs of bf16 in vectors at half the rate of fp32.
constexpr TrainingTable kTraining[] = {training_kernels_baseline, training_kernels_avx2, training_kernels_avx512,
                                       training_kernels_avx512_bf16, training_kernels_avx512};
static_assert(std::size(kTraining) == std::size(kLevels));

}  // namespace

std::span<const Level> levels() { return kLevels; }
std::span<const TrainingTable> training_tables() { return kTraining; }

}  // namespace sparsight::cpu
