// A list of jobs as a SLURM job array: a script for `sbatch` whose tasks run the jobs that are left. Task I of N runs
// the jobs I, I + N, I + 2 N, ... of the list (run_jobs.h) that are not done yet; so a script may be submitted again,
// also while processes started by hand are running.
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
  int64_t count = 1;                 // number of tasks that share all jobs
  std::vector<int64_t> tasks;        // those with a job left
  std::optional<double> seconds;     // estimate for the longest of them
};

// The tasks of an array that have jobs left: at most `count`, fewer if there are fewer jobs. SLURM rejects arrays
// beyond its MaxArraySize (1001 by default). Raises Error if all jobs are done.
SlurmArray slurm_array(const JobList& list, const JobStore& store, int64_t count);

// The script. Raises UsageError if a folder's name contains a line break, which no #SBATCH line can express.
std::string slurm_script(const SlurmArray& array);

// Raises Error if the file exists and is not such a script.
void write_slurm_script(const std::string& file, const SlurmArray& array);

}  // namespace sparsight
