// Commands that do many runs in one folder: plan, SLURM script, one task of it, or all runs in one or several
// processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/jobs_arguments.h"
#include "sparsight/dist/group.h"
#include "sparsight/jobs/run_jobs.h"

namespace sparsight::cli {

// A list of runs, and what is done with it.
struct ManyRuns {
  std::string verb;  // "dg sweep"
  std::string of;    // what the folder holds
  JobList list;
  std::vector<std::string> command;  // that repeats the arguments, but for the folder and the task
  std::function<void(const JobStore& store)> print;
};

// What the arguments say is done with the runs. Raises Error where some failed.
void work_on(const ManyRuns& runs, const JobsArguments& jobs, dist::Group& group);
// Calls work_on() in the processes that the arguments name.
void work_in_group(const ManyRuns& runs, const JobsArguments& jobs);

}  // namespace sparsight::cli
