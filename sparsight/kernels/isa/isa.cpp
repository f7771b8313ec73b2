#include "sparsight/kernels/isa/isa.h"

#include <algorithm>
#include <cstdlib>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/kernels/isa/level.h"

namespace sparsight {
namespace {

// The levels that this CPU has.
const std::vector<const cpu::Level*>& levels_here() {
  static const std::vector<const cpu::Level*> here = [] {
    std::vector<const cpu::Level*> found;
    for (const cpu::Level& level : cpu::levels())
      if (level.is_here()) found.push_back(&level);
    return found;
  }();
  return here;
}

std::string from_environment(const char* variable) {
  const char* const value = std::getenv(variable);
  return value ? value : "";
}

bool is_consistent(const std::string& name) {
  if (name.empty() || name == "fast") return false;
  if (name != "consistent")
    fail_usage("there is no arithmetic \"", name, "\"; set SPARSIGHT_ARITHMETIC to fast or consistent");
  if (std::ranges::none_of(levels_here(), [](const cpu::Level* level) { return level->is_chain; }))
    fail_usage("consistent arithmetic needs fused multiply-add, which this CPU lacks; unset SPARSIGHT_ARITHMETIC");
  return true;
}

const cpu::Level* level_named(const std::string& name) {
  const std::vector<const cpu::Level*>& here = levels_here();
  if (name.empty()) return here.back();
  const auto found = std::ranges::find(here, name, [](const cpu::Level* level) { return std::string(level->name); });
  if (found == here.end())
    fail_usage("this CPU has no instruction-set level \"", name,
               "\"; set SPARSIGHT_ISA to one of: ", join(isa_names()));
  return *found;
}

// The fastest up to `level` that is a chain, or the slowest that is.
const cpu::Level* chain_up_to(const cpu::Level* level) {
  const cpu::Level* found = nullptr;
  for (const cpu::Level* each : levels_here()) {
    if (each->is_chain) found = each;
    if (found && each >= level) break;
  }
  return found;
}

struct Choice {
  bool consistent = is_consistent(from_environment("SPARSIGHT_ARITHMETIC"));
  const cpu::Level* wanted = level_named(from_environment("SPARSIGHT_ISA"));
  const cpu::Level* active = nullptr;
  const cpu::Kernels* kernels = nullptr;
  Choice() { settle(); }
  void settle() {
    active = consistent ? chain_up_to(wanted) : wanted;
    kernels = &active->kernels();
  }
};

Choice& choice() {
  static Choice choice;
  return choice;
}

}  // namespace

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const cpu::Level* level : levels_here()) names.emplace_back(level->name);
  return names;
}

std::string active_isa() { return choice().active->name; }

void set_isa(const std::string& name) {
  choice().wanted = level_named(name.empty() ? from_environment("SPARSIGHT_ISA") : name);
  choice().settle();
}

bool consistent_arithmetic() { return choice().consistent; }

void set_arithmetic(const std::string& name) {
  choice().consistent = is_consistent(name.empty() ? from_environment("SPARSIGHT_ARITHMETIC") : name);
  choice().settle();
}

const cpu::Kernels& cpu::kernels() { return *choice().kernels; }

const cpu::TrainingKernels& cpu::training_kernels() {
  return training_tables()[static_cast<size_t>(choice().active - levels().data())]();
}

}  // namespace sparsight
