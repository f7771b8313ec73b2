#include "sparsight/reproduce/kept_results.h"

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/data/fingerprint.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"

namespace sparsight {
namespace {

// Nothing where there is none, or a damaged one: it is computed again.
std::optional<Json> known_result(const std::string& file) {
  if (!std::filesystem::exists(file)) return std::nullopt;
  std::string problem = "has no result";
  const auto json = try_parse_checked_object(read_file(file, kMaxJsonBytes), problem);
  if (json && json->contains("result")) return json->at("result");
  log_warning("the kept result ", file, " is damaged (", problem, "): it is computed again");
  return std::nullopt;
}

}  // namespace

KeptResults::KeptResults(const FigureRun& run, const std::string& paper, std::string version)
    : version_(std::move(version)) {
  const std::filesystem::path folder(run.folder);
  const bool usual = folder.parent_path().filename() == paper;
  folder_ = ((usual ? folder.parent_path() : folder) / "models").string();
  create_folder(folder_);
}

std::string KeptResults::file(const Json& identity, const std::string& ending) const {
  return cat(folder_, "/", fingerprint_texts({version_, identity.dump()}), ending);
}

std::string KeptResults::folder_for(const Json& identity) const {
  std::string folder = file(identity, ".work");
  create_folder(folder);
  return folder;
}

Json KeptResults::result(const Json& identity, const std::function<Json()>& compute) const {
  const std::string file = this->file(identity, ".json");
  if (auto known = known_result(file)) return std::move(*known);
  const FileLock lock = kept_lock(file);
  if (auto known = known_result(file)) return std::move(*known);
  const Json result = compute();
  write_file_atomically(file, checked_json_line({{"of", identity}, {"result", result}}));
  std::error_code ignored;
  std::filesystem::remove_all(this->file(identity, ".work"), ignored);
  return result;
}

FileLock kept_lock(const std::string& file) {
  while (true) {
    if (interrupted()) fail("interrupted");
    if (std::optional<FileLock> lock = FileLock::try_take(file + ".lock")) return std::move(*lock);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

}  // namespace sparsight
