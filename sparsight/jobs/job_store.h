// Jobs as folders that any number of processes share, also on several machines with a shared disk. A job is identified
// by its settings, a JSON object; its folder is named by their hash.
//
//   jobs.json               what the jobs are: {"format", "of"}
//   env.json                the environment in which the first one started
//   jobs/ID/settings.json   settings of the job; ID is their hash
//   jobs/ID/result.json     of a finished job: {"settings", "result", "seconds"} and their checksum (checked_json.h)
//   jobs/ID/failed.json     {"settings", "error"}: not retried by this run, but by the next one
//   jobs/ID/lock            held by the process that runs the job; contains its process ID
//   jobs/ID/...             the job's own files, such as checkpoints to resume from
//
// Files are complete or absent. A killed process loses what its job had not saved; other jobs are not affected.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {

struct DoneJob {
  Json result;         // any JSON value
  double seconds = 0;  // that it took; for a job that was killed and resumed: since it was resumed
};

// The identity of a job: 16 hexadecimal digits, equal for equal settings in the same order.
std::string job_id(const Json& settings);

class JobStore {
 public:
  // Creates the folder, or opens an existing one of the same jobs. of: a description: "pmoe/fig4 at scale small, real
  // data". option: of the command line, which chooses the folder. Raises Error for a folder of other jobs or with other
  // content.
  JobStore(const std::string& folder, const std::string& of, const std::string& option = "--run");
  // Nothing if the folder is missing or empty. Otherwise as the constructor.
  static std::optional<JobStore> open(const std::string& folder, const std::string& of,
                                      const std::string& option = "--run");

  const std::string& folder() const { return folder_; }
  std::string environment() const { return folder_ + "/env.json"; }  // of the process that made the folder
  std::string job_folder(const Json& settings) const { return folder_ + "/jobs/" + job_id(settings); }

  bool is_done(const Json& settings) const;
  // Nothing if the job is not done. A damaged file is removed with a warning.
  std::optional<DoneJob> read(const Json& settings) const;
  // Makes a finished job one that is to run again.
  void forget_result(const Json& settings) const;
  // The lock of the job, with its folder created; nothing if it is done or another process is running it.
  std::optional<FileLock> claim(const Json& settings) const;
  bool is_claimed(const Json& settings) const;
  // Removes temporary files of the store that a process killed during this job left behind.
  void tidy(const Json& settings) const;
  // Whether the process `pid`, which has ended, was running this job.
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

}  // namespace sparsight
