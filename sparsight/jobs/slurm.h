// A list of jobs as an array of the batch scheduler SLURM: a script for `sbatch` whose tasks do the jobs that are left.
// Task I of N does the jobs I, I + N, I + 2 N, ... of the list (run_jobs.h), whatever is done by then; so a script may
// be submitted again, and beside processes that were started by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

struct SlurmArray {
  std::string name;                  // of the jobs
  std::string working_folder;        // where tasks run; absolute
  std::string log_folder;            // where each task's output goes; absolute
  std::vector<std::string> command;  // of a task, its last word without "INDEX/COUNT": {..., "--task="}
  int64_t threads = 1;               // of a task
  int64_t count = 1;                 // tasks that all jobs are dealt to
  std::vector<int64_t> tasks;        // those with a job left
  std::optional<double> seconds;     // that the longest of them may take
};

// The tasks of an array in which something is left to do: `count` of them at most, fewer where there are fewer jobs.
// SLURM refuses arrays beyond its MaxArraySize (1001 where nobody changed it). Raises Error where all jobs are done.
SlurmArray slurm_array(const JobList& list, const JobStore& store, int64_t count);

// The script. Raises UsageError where a folder's name holds a line break, which sbatch has no way to write.
std::string slurm_script(const SlurmArray& array);

// Raises Error where the file exists and is no such script.
void write_slurm_script(const std::string& file, const SlurmArray& array);

}  // namespace sparsight
