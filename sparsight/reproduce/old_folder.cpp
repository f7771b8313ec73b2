#include "sparsight/reproduce/old_folder.h"

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/file_lock.h"
#include "sparsight/jobs/job_store.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 16 << 20;
constexpr size_t kIdDigits = 16;

bool is_id(const std::string& text) {
  return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// jobs/ID.json becomes jobs/ID/result.json; locks and failures of processes that are gone have nothing more to say.
void move_jobs(const std::string& jobs) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(jobs))
    if (entry.is_regular_file() && is_id(entry.path().filename().string().substr(0, kIdDigits)))
      files.push_back(entry.path());
  for (const fs::path& file : files) {
    const std::string name = file.filename(), id = name.substr(0, kIdDigits);
    if (name == id + ".json") {
      fs::create_directories(fs::path(jobs) / id);
      fs::rename(file, fs::path(jobs) / id / "result.json");
    } else if (name.starts_with(id + ".")) {
      fs::remove(file);
    }
  }
}

}  // namespace

void convert_old_folder(const std::string& folder, const std::string& of) {
  const std::string old = folder + "/figure.json";
  std::error_code error;
  if (!fs::exists(old, error)) return;
  const Descriptor alone = wait_for_folder(folder);  // two processes may begin at once
  if (!fs::exists(old, error)) return;
  const Json json = Json::parse(read_file(old, kMaxBytes), nullptr, /*allow_exceptions=*/false);
  const auto format = number(json, "format");
  if (!format || text(json, "figure").empty())
    fail("cannot tell what ", folder, " holds: its figure.json is damaged; choose another folder with --run");
  if (*format != 1)
    fail(folder, " is of format ", *format,
         ", and this version of sparsight reads 1; choose another folder with --run");
  if (const std::string found = figure_jobs_text(text(json, "figure"), text(json, "scale"), text(json, "stand_in"));
      found != of)
    fail_other_jobs(folder, found, of);
  try {
    if (fs::exists(folder + "/jobs")) move_jobs(folder + "/jobs");
    if (!fs::exists(folder + "/jobs.json"))
      write_file_atomically(folder + "/jobs.json", Json{{"format", 1}, {"of", of}}.dump(2) + "\n");
    fs::remove(old);
  } catch (const fs::filesystem_error& problem) {
    fail_system("bring to the present format the folder", folder, problem.code().value());
  }
}

std::string figure_jobs_text(const std::string& figure, const std::string& scale, const std::string& stand_in) {
  return cat(figure, " at scale ", scale, ", ", stand_in.empty() ? "real data" : cat("stand-in data (", stand_in, ")"));
}

}  // namespace sparsight
