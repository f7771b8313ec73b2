#include "sparsight/kernels/isa/isa.h"

#include <algorithm>
#include <cstdlib>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight {
namespace {

const std::vector<std::string>& all_names() {
  static const std::vector<std::string> names{"baseline", "avx2", "avx512", "avx512_bf16",
                                              "amx"};  // in the order of the enumeration
  return names;
}

#if defined(__x86_64__)
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
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & kAll) == kAll && may_use_tiles();
}
#endif

Isa fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return !__builtin_cpu_supports("avx512bf16") ? Isa::avx512 : has_amx() ? Isa::amx : Isa::avx512_bf16;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa parse_isa(const std::string& name) {
  const std::vector<std::string> here = isa_names();
  const auto found = std::find(here.begin(), here.end(), name);
  if (found == here.end())
    fail_usage("this CPU has no instruction-set level \"", name, "\"; set SPARSIGHT_ISA to one of: ", join(here));
  return static_cast<Isa>(found - here.begin());
}

Isa default_isa() {
  const char* wanted = std::getenv("SPARSIGHT_ISA");
  return wanted && *wanted ? parse_isa(wanted) : fastest();
}

Isa& current() {
  static Isa isa = default_isa();
  return isa;
}

}  // namespace

std::vector<std::string> isa_names() {
  return {all_names().begin(), all_names().begin() + static_cast<int>(fastest()) + 1};
}

const std::string& isa_name(Isa isa) { return all_names()[static_cast<size_t>(isa)]; }

Isa active_isa() { return current(); }

void set_isa(const std::string& name) { current() = name.empty() ? default_isa() : parse_isa(name); }

}  // namespace sparsight
