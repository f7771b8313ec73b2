#include "sparsight/core/engines.h"

#include <mutex>
#include <utility>

namespace sparsight {
namespace {

struct ProcessEngines {
  std::mutex mutex;
  std::function<Engines()> choose;
  Engines engines{};
};
ProcessEngines& process_engines() {
  static ProcessEngines process;
  return process;
}

thread_local std::optional<Engines> forced_engines;

}  // namespace

const char* engine_name(Engine engine) { return engine == Engine::kernels ? "kernels" : "oneDNN"; }

const char* engine_use_name(EngineUse use) {
  switch (use) {
    case EngineUse::linear_training:
      return "linear_training";
    case EngineUse::linear_inference:
      return "linear_inference";
    default:
      return "conv_inference";
  }
}

Engines faster_engines(const EngineRates& rates) {
  Engines faster{};
  for (size_t i = 0; i < rates.size(); ++i) faster[i] = rates[i].faster();
  return faster;
}

Engines all_on(Engine engine) {
  Engines all;
  all.fill(engine);
  return all;
}

Engines engines() {
  if (forced_engines) return *forced_engines;
  ProcessEngines& process = process_engines();
  const std::lock_guard lock(process.mutex);
  if (process.choose) process.engines = std::exchange(process.choose, nullptr)();
  return process.engines;
}

Engine engine_of(EngineUse use) { return engines()[static_cast<size_t>(use)]; }

void choose_engines_by(std::function<Engines()> choose) {
  ProcessEngines& process = process_engines();
  const std::lock_guard lock(process.mutex);
  process.choose = std::move(choose);
}

EngineScope::EngineScope(const Engines& engines) : before_(std::exchange(forced_engines, engines)) {}

EngineScope::~EngineScope() { forced_engines = before_; }

}  // namespace sparsight
