// The jobs of a figure as files of a folder, which any number of processes share:
//
//   figure.json              what the folder is about: format, figure, scale, stand-in data
//   env.json                 where it was begun
//   jobs/HASH.json           a finished job: {"settings", "result", "seconds"}; HASH is of the settings
//   jobs/HASH.lock           held by the process that does the job, whose number it contains
//   jobs/HASH.failed.json    {"settings", "error"}: not tried again by this sweep, but by the next one
//
// Files are whole or absent. Whoever is killed loses the job that he was at, and no other.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {

// What a folder is about. Jobs of another figure, scale or kind of data are not mixed in.
struct SweepIdentity {
  std::string figure, scale, stand_in;
};

struct DoneJob {
  Json result;
  double seconds = 0;
};

class JobStore {
 public:
  // Makes the folder, or opens one of the same identity. Raises Error for any other folder with something in it.
  JobStore(const std::string& folder, const SweepIdentity& identity);

  const std::string& folder() const { return folder_; }

  bool is_done(const Json& settings) const;
  // What the job measured; nothing where it is not done. A damaged file is removed with a warning.
  std::optional<DoneJob> read(const Json& settings) const;
  // The right to do the job; nothing where it is done or another process is at it.
  std::optional<FileLock> claim(const Json& settings) const;
  bool is_claimed(const Json& settings) const;
  // Removes the lock file of a process that was killed before it could.
  void tidy(const Json& settings) const;
  // Whether the process `pid`, which has ended, was at this job.
  bool was_claimed_by(const Json& settings, int pid) const;
  void finish(const Json& settings, const DoneJob& job) const;

  void record_failure(const Json& settings, const std::string& error) const;
  bool has_failed(const Json& settings) const;
  std::optional<std::string> failure(const Json& settings) const;
  void forget_failure(const Json& settings) const;

 private:
  std::string path(const Json& settings, const char* ending) const;

  std::string folder_;
};

}  // namespace sparsight
