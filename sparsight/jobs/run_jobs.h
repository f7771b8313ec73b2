// Runs a list of jobs, each once, in this process or in several. Processes coordinate through the folder (job_store.h)
// alone: more of them may be started at any time, on other machines too, and any may be killed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/lazy_list.h"
#include "sparsight/jobs/job_store.h"

namespace sparsight {

// The settings of jobs. The jobs of one block are expected to take equally long.
using JobSettings = LazyList<Json>;

using JobDamage = std::function<std::string(const std::string& folder)>;

struct JobList {
  std::string name;      // "pmoe/fig4", for progress and plans
  JobSettings settings;  // one per job, all different: everything that determines the result
  // Runs a job and returns its result, any JSON value. `folder` is the job's own: files there are kept, so that it can
  // resume after a kill. Raises Error on failure, and must also raise if it stops early because of interrupted().
  std::function<Json(const Json& settings, const std::string& folder)> run;
  // Estimated seconds of a job, above 0; {}: unknown until the first one is done. Once jobs are done, only the ratios
  // of these numbers count.
  std::function<double(const Json& settings)> expected_seconds = {};
  // Only the ratios of these numbers are known, so that no time is until the first job is done.
  bool expects_ratios = false;
  // What is wrong with the files that a finished job left in its folder, besides its result; "" if nothing is. The job
  // then runs again. {}: there are no such files.
  JobDamage damage = {};
  // What a job is, "erm, test environment 2": said where it begins. {}: nothing is said.
  std::function<std::string(const Json& settings)> describe = {};
};

// Each job has a folder of its own, and every process looks at all of them.
inline constexpr size_t kMaxJobs = 1'000'000;
// Raises UsageError where there are more jobs than can be run.
void check_can_run(const JobList& list);

// Forgets a finished job whose result or other files are damaged, with a warning: it runs again.
void forget_if_damaged(const JobStore& store, const Json& settings, const JobDamage& damage);

// One pass over the jobs in order: runs those that no other process is running, and stops if interrupted(). A job that
// raises an error is recorded as failed. Raises Error if the folder cannot be written.
void work_once(const JobList& list, const JobStore& store, const std::function<void()>& after_each = {});

// Runs until every job is done or failed, by this process or another; with a progress line. Finished jobs that are
// damaged run again. Raises Error if interrupted.
void work_here(const JobList& list, const JobStore& store);
// The same in one more process, beside one that calls work_here() and so looks for damaged jobs.
void work_along(const JobList& list, const JobStore& store);
// As work_here(), in `processes` processes, each started with `command`, which must call work_once() on the same jobs.
void work_in_processes(const JobList& list, const JobStore& store, const std::vector<std::string>& command,
                       int64_t processes);

// The jobs index, index + count, index + 2 count, ... of the list: the share of one task of a scheduler's job array.
struct ArrayTask {
  int64_t index = 0, count = 1;
};
// "3/27": task 3 of 27, numbered from 0. Raises UsageError for any other string.
ArrayTask parse_array_task(const std::string& text);

struct TaskResult {
  int64_t done = 0, failed = 0, elsewhere = 0;  // elsewhere: another process is running them
};
// One pass over the jobs of a task; those that failed earlier are retried. Raises Error if interrupted.
TaskResult work_on_task(const JobList& list, const JobStore& store, const ArrayTask& task);

}  // namespace sparsight
