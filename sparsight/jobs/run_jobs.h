// Does a list of jobs, each once, in this process or spread over several. Processes meet in the folder (job_store.h)
// and nowhere else: more of them may be started at any time, on other machines too, and any may be killed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/jobs/job_store.h"

namespace sparsight {

struct JobList {
  std::string name;            // "pmoe/fig4", for progress and plans
  std::vector<Json> settings;  // one a job, no two alike: whatever decides the result
  // Does a job: any JSON value. `folder` is the job's own, where it may keep what it needs to go on after a kill; what
  // it leaves there stays. Raises Error where it cannot; one that stops early because of interrupted() must raise, too.
  std::function<Json(const Json& settings, const std::string& folder)> run;
  // About how many seconds a job takes, above 0; {}: nothing is known before the first one is done. Where jobs are
  // done, only the ratios of these numbers count.
  std::function<double(const Json& settings)> expected_seconds = {};
};

// One pass over the jobs in their order: does those that no other process is at, and stops where interrupted() says so.
// A job that raises an error is recorded as failed. Raises Error where the folder cannot be written.
void work_once(const JobList& list, const JobStore& store, const std::function<void()>& after_each = {});

// Until every job is done or failed, by this process or another; with a line of progress. Raises Error where it was
// interrupted.
void work_here(const JobList& list, const JobStore& store);
// The same in `processes` processes, each started with `command`, which is to come to work_once() on the same jobs.
void work_in_processes(const JobList& list, const JobStore& store, const std::vector<std::string>& command,
                       int64_t processes);

// The jobs index, index + count, index + 2 count, ... of the list: what one task of a batch scheduler's array does.
struct ArrayTask {
  int64_t index = 0, count = 1;
};
// "3/27": task 3 of 27, which are numbered from 0. Raises UsageError for any other text.
ArrayTask parse_array_task(const std::string& text);

struct TaskResult {
  int64_t done = 0, failed = 0, elsewhere = 0;  // elsewhere: another process is at them
};
// One pass over the jobs of a task; those that failed earlier are tried again. Raises Error where it was interrupted.
TaskResult work_on_task(const JobList& list, const JobStore& store, const ArrayTask& task);

}  // namespace sparsight
