// The plan of a list of jobs, without running any: how many are left, and how long they may take.
#pragma once

#include <optional>
#include <string>

#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

struct JobPlan {
  std::string name;
  int64_t jobs = 0, done = 0;
  int64_t failed = 0;   // of those that are left: to be retried
  int64_t running = 0;  // of those that are left: a process is running them
  double seconds_done = 0;
  // Time of all jobs that are left, one after the other, and of the longest; null if unknown.
  std::optional<double> seconds_left, longest_left;
  bool measured = false;  // the two are based on finished jobs; else on the list's own estimate

  int64_t left() const { return jobs - done; }
};

// store: null if nothing has been started; then the cost is that of the blocks of the list, not of its jobs.
JobPlan plan_jobs(const JobList& list, const JobStore* store);

// Estimated seconds of each job: the list's own estimate, scaled to fit the finished jobs; their mean if the list has
// none. {} if unknown.
std::vector<double> expected_seconds(const JobList& list, const JobStore& store);

// "pmoe/fig4: 27 jobs, 10 done, 17 left (1 failed before, 2 running); estimated time 0.24 hours, 0.12 hours with 2
// processes (based on the finished jobs)"
std::string plan_text(const JobPlan& plan, int64_t processes);
// {"name", "jobs", "done", "left", "failed", "running", "hours_done", "expected_hours", "longest_hours", "estimate"}:
// the two expected times are null if unknown; "estimate" is "measured", "declared" or null.
Json plan_json(const JobPlan& plan);

}  // namespace sparsight
