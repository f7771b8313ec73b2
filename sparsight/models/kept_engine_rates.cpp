#include "sparsight/models/kept_engine_rates.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/machine.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/random.h"
#include "sparsight/io/file_lock.h"
#include "sparsight/kernels/isa/isa.h"
#include "sparsight/models/engine_rates.h"
#include "sparsight/nn/onednn_linear.h"

namespace sparsight {
namespace {

constexpr size_t kMaxEngineRatesBytes = size_t{1} << 16;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// What the rates depend on.
Json measured_machine() {
  return {{"processor", processor_name()},
          {"instruction_set", isa_name(active_isa())},
          {"sparsight", SPARSIGHT_VERSION},
          {"torch", torch_version()}};
}

std::string kept_text(const EngineRates& rates) {
  Json kept = measured_machine();
  for (const EngineUse use : kEngineUses) {
    const EngineRate& rate = rates[static_cast<size_t>(use)];
    kept["gflops"][engine_use_name(use)] = {{"kernels", rate.kernels}, {"onednn", rate.onednn}};
  }
  return json_text(kept, 2) + "\n";
}

EngineRates read_rates(const std::string& path) {
  const Json kept = parse_json_object(read_file(path, kMaxEngineRatesBytes), path);
  EngineRates rates;
  for (const EngineUse use : kEngineUses) {
    const Json& rate = member(member(kept, "gflops"), engine_use_name(use));
    const std::optional<double> kernels = number(rate, "kernels"), onednn = number(rate, "onednn");
    if (!kernels || !onednn || *kernels <= 0 || *onednn < 0)
      fail(path, ": gflops.", engine_use_name(use), " must have numbers kernels > 0 and onednn >= 0");
    rates[static_cast<size_t>(use)] = {*kernels, *onednn};
  }
  return rates;
}

// Whether the file is there, measured now if it was not.
bool make_file(const std::string& path) {
  try {
    if (std::filesystem::exists(path)) return true;
    const std::string folder = std::filesystem::path(path).parent_path();
    create_folder(folder);
    const Descriptor lock = wait_for_folder(folder);
    if (!std::filesystem::exists(path)) write_file_atomically(path, kept_text(measure_engine_rates()));
    return true;
  } catch (const Error&) {  // a home that cannot be written to is no reason for a warning in every command
  } catch (const std::filesystem::filesystem_error&) {
  }
  return false;
}

}  // namespace

std::optional<std::string> engine_rates_file() {
  std::filesystem::path folder = variable("XDG_CACHE_HOME");
  if (!folder.is_absolute()) {
    folder = variable("HOME");
    if (!folder.is_absolute()) return std::nullopt;
    folder /= ".cache";
  }
  char name[64];
  std::snprintf(name, sizeof name, "engines-%016llx.json",
                static_cast<unsigned long long>(hash_name(json_text(measured_machine()))));
  return folder / "sparsight" / name;
}

std::optional<EngineRates> kept_engine_rates() {
  const std::optional<std::string> path = engine_rates_file();
  if (!path || !make_file(*path)) return std::nullopt;
  try {
    return read_rates(*path);
  } catch (const Error& error) {
    log_warning("all layers run on the kernels, since their rates are not known: ", error.what());
  }
  return std::nullopt;
}

Engines environment_engines() {
  const std::string wanted = variable("SPARSIGHT_ENGINES");
  if (wanted == "kernels") return all_on(Engine::kernels);
  if (wanted == "onednn" && !has_onednn()) fail_usage("SPARSIGHT_ENGINES is onednn, but this libtorch lacks oneDNN");
  if (wanted == "onednn") return all_on(Engine::onednn);
  if (!wanted.empty() && wanted != "measured")
    fail_usage("SPARSIGHT_ENGINES is \"", printable(wanted),
               "\"; it must be measured (the default), kernels or onednn");
  if (!variable("SPARSIGHT_ISA").empty()) return all_on(Engine::kernels);
  const std::optional<EngineRates> rates = kept_engine_rates();
  return rates ? faster_engines(*rates) : all_on(Engine::kernels);
}

bool environment_forces_engines() {
  const std::string wanted = variable("SPARSIGHT_ENGINES");
  return (!wanted.empty() && wanted != "measured") || !variable("SPARSIGHT_ISA").empty();
}

}  // namespace sparsight
