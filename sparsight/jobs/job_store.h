// Jobs as folders that any number of processes share, on several machines too if they see the same disk. A job is
// known by its settings, a JSON object; its folder is named by their hash.
//
//   jobs.json               what the folder is about: {"format", "of"}
//   env.json                where it was begun
//   jobs/ID/settings.json   of the job whose ID is the hash of these
//   jobs/ID/result.json     of a finished job: {"settings", "result", "seconds"}
//   jobs/ID/failed.json     {"settings", "error"}: not tried again by this run, but by the next one
//   jobs/ID/lock            held by the process that does the job, whose number it contains
//   jobs/ID/...             what the job keeps for itself, so that it can go on where it was killed
//
// Files are whole or absent. A killed process loses what its job did not keep, and no other job.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {

struct DoneJob {
  Json result;         // any JSON value
  double seconds = 0;  // that it took; of a job that was killed and went on: since it went on
};

// The identity of a job: 16 hexadecimal digits, equal for equal settings in the same order.
std::string job_id(const Json& settings);

class JobStore {
 public:
  // Makes the folder, or opens one of the same jobs. of: what they are, in words: "pmoe/fig4 at scale small, real
  // data". Raises Error for a folder of other jobs, and for any other one with something in it.
  JobStore(const std::string& folder, const std::string& of);
  // Nothing where the folder is absent or empty. Otherwise as the constructor.
  static std::optional<JobStore> open(const std::string& folder, const std::string& of);

  const std::string& folder() const { return folder_; }
  std::string job_folder(const Json& settings) const { return folder_ + "/jobs/" + job_id(settings); }

  bool is_done(const Json& settings) const;
  // Nothing where the job is not done. A damaged file is removed with a warning.
  std::optional<DoneJob> read(const Json& settings) const;
  // The right to do the job, and its folder; nothing where it is done or another process is at it.
  std::optional<FileLock> claim(const Json& settings) const;
  bool is_claimed(const Json& settings) const;
  // Removes what a process that was killed at this job left of the store's own files.
  void tidy(const Json& settings) const;
  // Whether the process `pid`, which has ended, was at this job.
  bool was_claimed_by(const Json& settings, int pid) const;
  void finish(const Json& settings, const DoneJob& job) const;

  void record_failure(const Json& settings, const std::string& error) const;
  bool has_failed(const Json& settings) const;
  std::optional<std::string> failure(const Json& settings) const;
  void forget_failure(const Json& settings) const;

 private:
  std::string path(const Json& settings, const char* file) const { return job_folder(settings) + "/" + file; }

  std::string folder_;
};

// Raises Error: "<folder> holds <found>, not <wanted>; choose another folder with --run".
[[noreturn]] void fail_other_jobs(const std::string& folder, const std::string& found, const std::string& wanted);

}  // namespace sparsight
