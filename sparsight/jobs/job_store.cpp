#include "sparsight/jobs/job_store.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <initializer_list>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/random.h"
#include "sparsight/io/checked_json.h"
#include "sparsight/io/run_folder.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr int kJobsFormat = 1;

// The object in a file; null where it holds none.
Json read_object(const std::string& path) {
  return try_parse_json_object(read_file(path, kMaxJsonBytes)).value_or(Json());
}

bool is_there(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

void check_identity(const std::string& folder, const std::string& wanted, const std::string& option) {
  const Json json = read_object(folder + "/jobs.json");
  const auto format = number(json, "format");
  if (!format || text(json, "of").empty())
    fail("cannot tell what ", folder, " holds: its jobs.json is damaged; choose another folder with ", option);
  if (*format != kJobsFormat)
    fail(folder, " is of format ", *format, ", and this version of sparsight reads ", kJobsFormat,
         "; choose another folder with ", option);
  if (const std::string found = text(json, "of"); found != wanted)
    fail(folder, " holds ", printable(found), ", not ", printable(wanted), "; choose another folder with ", option);
}

// Whether the folder holds more than what a process killed at its very start leaves behind.
bool holds_something(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename();
        name != "jobs" && name != "env.json" && !name.ends_with(kTemporaryEnding))
      return true;
  if (error) fail_system("read the folder", folder, error.value());
  return false;
}

void check_is_folder(const std::string& path, const std::string& option) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(path, error)) && !fs::is_directory(path, error))
    fail("the run folder ", path, " is a file; choose another name with ", option);
}

[[noreturn]] void fail_foreign_files(const std::string& folder, const std::string& option) {
  fail("the folder ", folder, " holds files that do not belong to jobs; choose another folder with ", option);
}

void remove_file(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) fail_system("remove", path, error.value());
}

// Removes temporary files of a killed process for one of the folder's files.
void remove_remains(const std::string& folder, std::initializer_list<const char*> files) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    for (const char* file : files)
      if (name.starts_with(std::string(file) + ".") && name.ends_with(kTemporaryEnding)) remove_file(entry.path());
  }
}

void remove_job_remains(const std::string& folder) {
  remove_remains(folder, {"settings.json", "result.json", "failed.json"});
}

std::string file_text(const Json& json) { return json_text(json, 2) + "\n"; }

}  // namespace

std::string job_id(const Json& settings) {
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash_name(settings.dump())));
  return name;
}

JobStore::JobStore(const std::string& folder, const std::string& of, const std::string& option) : folder_(folder) {
  check_is_folder(folder, option);
  create_folder(folder);
  const Descriptor alone = wait_for_folder(folder);  // two processes may start at once
  if (!is_there(folder + "/jobs.json")) {
    if (holds_something(folder)) fail_foreign_files(folder, option);
    remove_remains(folder, {"env.json", "jobs.json"});
    write_file_atomically(environment(), file_text(describe_environment()));
    write_file_atomically(folder + "/jobs.json", file_text({{"format", kJobsFormat}, {"of", of}}));
  }
  check_identity(folder, of, option);
  create_folder(folder + "/jobs");
}

std::optional<JobStore> JobStore::open(const std::string& folder, const std::string& of, const std::string& option) {
  check_is_folder(folder, option);
  if (!is_there(folder)) return std::nullopt;
  if (is_there(folder + "/jobs.json")) return JobStore(folder, of, option);
  if (holds_something(folder)) fail_foreign_files(folder, option);
  return std::nullopt;
}

bool JobStore::is_done(const Json& settings) const { return is_there(path(settings, "result.json")); }

std::optional<DoneJob> JobStore::read(const Json& settings) const {
  if (!is_done(settings)) return std::nullopt;
  const std::string file = path(settings, "result.json");
  std::string damage;
  try {
    const Json json = parse_checked_object(read_file(file, kMaxJsonBytes), "the file");
    const auto seconds = number(json, "seconds");
    if (member(json, "settings") == settings && json.contains("result") && seconds)
      return DoneJob{json["result"], *seconds};
    damage = "its settings differ or it has no result";
  } catch (const Error& error) {
    damage = error.what();
  }
  log_warning("the job file ", file, " is damaged (", damage, "): the job will run again");
  forget_result(settings);
  return std::nullopt;
}

void JobStore::forget_result(const Json& settings) const {
  const std::string file = path(settings, "result.json");
  std::error_code error;
  fs::remove_all(file, error);  // even a folder of this name
  if (error) fail_system("remove", file, error.value());
}

std::optional<FileLock> JobStore::claim(const Json& settings) const {
  create_folder(job_folder(settings));
  auto lock = FileLock::try_take(path(settings, "lock"));
  if (!lock || is_done(settings)) return std::nullopt;
  if (lock->was_left_behind()) remove_job_remains(job_folder(settings));
  lock->write(std::to_string(getpid()));
  if (const std::string file = path(settings, "settings.json"); !is_there(file))
    write_file_atomically(file, file_text(settings));
  return lock;
}

void JobStore::tidy(const Json& settings) const {
  const std::string file = path(settings, "lock");
  if (!is_there(file)) return;
  if (const auto lock = FileLock::try_take(file); lock && lock->was_left_behind())
    remove_job_remains(job_folder(settings));
}

bool JobStore::is_claimed(const Json& settings) const { return FileLock::is_held(path(settings, "lock")); }

bool JobStore::was_claimed_by(const Json& settings, int pid) const {
  const std::string file = path(settings, "lock");
  if (!is_there(file) || FileLock::is_held(file)) return false;
  return read_file(file, kMaxJsonBytes) == std::to_string(pid);
}

void JobStore::finish(const Json& settings, const DoneJob& job) const {
  create_folder(job_folder(settings));
  write_file_atomically(path(settings, "result.json"),
                        checked_json_file({{"settings", settings}, {"result", job.result}, {"seconds", job.seconds}}));
}

void JobStore::record_failure(const Json& settings, const std::string& error) const {
  create_folder(job_folder(settings));
  write_file_atomically(path(settings, "failed.json"), file_text({{"settings", settings}, {"error", error}}));
}

bool JobStore::has_failed(const Json& settings) const { return is_there(path(settings, "failed.json")); }

std::optional<std::string> JobStore::failure(const Json& settings) const {
  const std::string file = path(settings, "failed.json");
  if (!is_there(file)) return std::nullopt;
  const Json json = read_object(file);
  const std::string error = text(json, "error");
  return error.empty() ? "the recorded error cannot be read" : printable(error);
}

void JobStore::forget_failure(const Json& settings) const { remove_file(path(settings, "failed.json")); }

}  // namespace sparsight
