#include "sparsight/ops/cpu/isa.h"

#include <algorithm>
#include <cstdlib>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight {
namespace {

const std::vector<std::string>& all_names() {
  static const std::vector<std::string> names{"baseline", "avx2", "avx512"};  // in the order of the enumeration
  return names;
}

Isa fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa parse_isa(const std::string& name) {
  const std::vector<std::string> here = isa_names();
  const auto found = std::find(here.begin(), here.end(), name);
  if (found == here.end())
    fail_usage("this CPU has no instruction-set level \"", name, "\" (SPARSIGHT_ISA; it has: ", join(here), ")");
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
