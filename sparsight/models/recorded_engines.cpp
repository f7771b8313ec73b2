#include "sparsight/models/recorded_engines.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/models/kept_engine_rates.h"
#include "sparsight/nn/onednn_linear.h"

namespace sparsight {
namespace {

constexpr size_t kMaxEnvironmentBytes = size_t{1} << 20;

// Nothing for names that this version does not know.
std::optional<Engines> engines_from(const Json& recorded) {
  Engines found{};
  for (const EngineUse use : kEngineUses) {
    const std::string name = text(recorded, engine_use_name(use));
    const Engine engine = name == engine_name(Engine::onednn) ? Engine::onednn : Engine::kernels;
    if (name != engine_name(engine)) return std::nullopt;
    found[static_cast<size_t>(use)] = engine;
  }
  return found;
}

std::string described(const Engines& chosen) {
  std::vector<std::string> parts;
  for (const EngineUse use : kEngineUses)
    parts.push_back(cat(engine_use_name(use), " on ", engine_name(chosen[static_cast<size_t>(use)])));
  return join(parts);
}

void warn_of_other_level(const Json& environment, const std::string& file) {
  const std::string began = text(environment, "kernel_level"), now = isa_name(active_isa());
  if (!began.empty() && began != now)
    log_warning(printable(file), ": began with ", printable(began), " kernels and goes on with ", now,
                " ones, which round differently: the result is not that of an unbroken run to the last bit");
}

}  // namespace

RecordedEngineScope::RecordedEngineScope(const std::string& env_file) {
  if (!std::filesystem::exists(env_file)) return;
  Json environment;
  try {
    environment = parse_json_object(read_file(env_file, kMaxEnvironmentBytes), env_file);
  } catch (const Error& error) {
    log_warning("the engines that this folder began with are not known: ", error.what());
    return;
  }
  warn_of_other_level(environment, env_file);
  const std::optional<Engines> began = engines_from(member(environment, "engines"));
  if (!began || *began == engines()) return;
  const bool lacks = std::ranges::count(*began, Engine::onednn) > 0 && !has_onednn();
  if (lacks || environment_forces_engines()) {
    log_warning(printable(env_file), ": began with ", described(*began), "; goes on with ", described(engines()),
                lacks ? ", since this libtorch lacks oneDNN" : ", as the environment asks",
                ": the result is not that of an unbroken run to the last bit");
    return;
  }
  log_info("goes on with the engines that the run began with: ", described(*began));
  scope_.emplace(*began);
}

}  // namespace sparsight
