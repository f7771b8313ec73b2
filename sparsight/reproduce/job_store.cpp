#include "sparsight/reproduce/job_store.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/random.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/report/run_metrics.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr size_t kMaxBytes = 16 << 20;

bool is_there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string identity_text(const SweepIdentity& identity) {
  return cat(printable(identity.figure), " at scale ", printable(identity.scale), ", ",
             identity.stand_in.empty() ? "real data" : cat("stand-in data (", printable(identity.stand_in), ")"));
}

void check_identity(const std::string& folder, const SweepIdentity& wanted) {
  const std::string file = folder + "/figure.json";
  const Json json = Json::parse(read_file(file, kMaxBytes), nullptr, /*allow_exceptions=*/false);
  const auto format = number(json, "format");
  if (!format || text(json, "figure").empty())
    fail("cannot tell what ", folder, " holds: its figure.json is damaged; choose another folder with --run");
  if (*format != kFormat)
    fail(folder, " is of format ", *format, ", and this version of sparsight reads ", kFormat,
         "; choose another folder with --run");
  const SweepIdentity found{text(json, "figure"), text(json, "scale"), text(json, "stand_in")};
  if (found.figure != wanted.figure || found.scale != wanted.scale || found.stand_in != wanted.stand_in)
    fail(folder, " holds ", identity_text(found), ", not ", identity_text(wanted),
         "; choose another folder with --run");
}

// Everything in the folder but what a sweep that was killed at its very beginning leaves.
bool holds_something(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename();
        name != "jobs" && name != "env.json" && !name.ends_with(kTemporaryEnding))
      return true;
  if (error) fail_system("read the folder", folder, error.value());
  return false;
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_system("make the folder", path, error.value());
}

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_system("remove", path, error.value());
}

// What a killed process was writing aside, of files that begin with `path` and a point.
void remove_remains(const std::string& path) {
  const std::string prefix = fs::path(path).filename().string() + ".";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), error))
    if (const std::string name = entry.path().filename(); name.starts_with(prefix) && name.ends_with(kTemporaryEnding))
      remove_file(entry.path());
}

std::string json_text(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

JobStore::JobStore(const std::string& folder, const SweepIdentity& identity) : folder_(folder) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error)) && !fs::is_directory(folder, error))
    fail("the run folder ", folder, " is a file; choose another name with --run");
  make_folder(folder);
  const Descriptor alone = wait_for_folder(folder);  // two processes may begin at once
  if (!is_there(folder + "/figure.json")) {
    if (holds_something(folder))
      fail("the folder ", folder,
           " holds files that are no figure's and would be mixed with them; choose another with --run");
    for (const char* file : {"/env.json", "/figure.json"}) remove_remains(folder + file);
    write_file_atomically(folder + "/env.json", json_text(describe_environment()));
    write_file_atomically(folder + "/figure.json", json_text({{"format", kFormat},
                                                              {"figure", identity.figure},
                                                              {"scale", identity.scale},
                                                              {"stand_in", identity.stand_in}}));
  }
  check_identity(folder, identity);
  make_folder(folder + "/jobs");
}

std::string JobStore::path(const Json& settings, const char* ending) const {
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash_name(settings.dump())));
  return folder_ + "/jobs/" + name + ending;
}

bool JobStore::is_done(const Json& settings) const { return is_there(path(settings, ".json")); }

std::optional<DoneJob> JobStore::read(const Json& settings) const {
  if (!is_done(settings)) return std::nullopt;
  const std::string file = path(settings, ".json");
  std::string damage;
  try {
    const Json json = Json::parse(read_file(file, kMaxBytes), nullptr, /*allow_exceptions=*/false);
    const auto seconds = number(json, "seconds");
    if (member(json, "settings") == settings && member(json, "result").is_object() && seconds)
      return DoneJob{json["result"], *seconds};
    damage = json.is_object() ? "it is of other settings or without a result" : "it is no JSON object";
  } catch (const Error& error) {
    damage = error.what();
  }
  log_warning("the job file ", file, " is damaged (", damage, "): the job is done again");
  std::error_code error;
  fs::remove_all(file, error);  // even a folder of this name
  if (error) fail_system("remove", file, error.value());
  return std::nullopt;
}

std::optional<FileLock> JobStore::claim(const Json& settings) const {
  auto lock = FileLock::try_take(path(settings, ".lock"));
  if (!lock || is_done(settings)) return std::nullopt;
  if (lock->was_left_behind()) remove_remains(path(settings, ""));
  lock->write(std::to_string(getpid()));
  return lock;
}

void JobStore::tidy(const Json& settings) const {
  const std::string file = path(settings, ".lock");
  if (!is_there(file)) return;
  if (const auto lock = FileLock::try_take(file); lock && lock->was_left_behind()) remove_remains(path(settings, ""));
}

bool JobStore::is_claimed(const Json& settings) const { return FileLock::is_held(path(settings, ".lock")); }

bool JobStore::was_claimed_by(const Json& settings, int pid) const {
  const std::string file = path(settings, ".lock");
  if (!is_there(file) || FileLock::is_held(file)) return false;
  return read_file(file, kMaxBytes) == std::to_string(pid);
}

void JobStore::finish(const Json& settings, const DoneJob& job) const {
  write_file_atomically(path(settings, ".json"),
                        json_text({{"settings", settings}, {"result", job.result}, {"seconds", job.seconds}}));
}

void JobStore::record_failure(const Json& settings, const std::string& error) const {
  write_file_atomically(path(settings, ".failed.json"), json_text({{"settings", settings}, {"error", error}}));
}

bool JobStore::has_failed(const Json& settings) const { return is_there(path(settings, ".failed.json")); }

std::optional<std::string> JobStore::failure(const Json& settings) const {
  const std::string file = path(settings, ".failed.json");
  if (!is_there(file)) return std::nullopt;
  const Json json = Json::parse(read_file(file, kMaxBytes), nullptr, /*allow_exceptions=*/false);
  const std::string error = text(json, "error");
  return error.empty() ? "for a reason that cannot be read any more" : printable(error);
}

void JobStore::forget_failure(const Json& settings) const { remove_file(path(settings, ".failed.json")); }

}  // namespace sparsight
