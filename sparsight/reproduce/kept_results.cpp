#include "sparsight/papers/robust_moe/experiments/kept_results.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/data/fingerprint.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight::robust_moe {
namespace {

constexpr const char* kResultsVersion = "robust_moe 1";

}  // namespace

std::string kept_folder(const FigureRun& run) {
  const std::filesystem::path folder(run.folder);
  const bool usual = folder.parent_path().filename() == "robust_moe";
  const std::string kept = ((usual ? folder.parent_path() : folder) / "models").string();
  create_folder(kept);
  return kept;
}

std::string kept_name(const Json& identity) { return fingerprint_of({kResultsVersion, identity.dump()}); }

FileLock kept_lock(const std::string& file) {
  while (true) {
    if (interrupted()) fail("interrupted");
    if (std::optional<FileLock> lock = FileLock::try_take(file + ".lock")) return std::move(*lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

Json kept_result(const std::string& folder, const Json& identity, const std::function<Json()>& compute) {
  const std::string file = cat(folder, "/", kept_name(identity), ".json");
  const auto known = [&] { return Json::parse(read_file(file, size_t{1} << 24)).at("result"); };
  if (std::filesystem::exists(file)) return known();
  const FileLock lock = kept_lock(file);
  if (std::filesystem::exists(file)) return known();
  const Json result = compute();
  write_file_atomically(file, Json{{"of", identity}, {"result", result}}.dump());
  return result;
}

}  // namespace sparsight::robust_moe
