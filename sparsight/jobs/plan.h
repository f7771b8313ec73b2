// What a list of jobs asks for, before any of them is begun: how many are left, and how long they may take.
#pragma once

#include <optional>
#include <string>

#include "sparsight/jobs/run_jobs.h"

namespace sparsight {

struct JobPlan {
  std::string name;
  int64_t jobs = 0, done = 0;
  int64_t failed = 0;   // of those that are left: tried again
  int64_t running = 0;  // of those that are left: some process is at them
  double seconds_done = 0;
  // Of the jobs that are left, one after the other, and of the longest; null where nothing is known about their time.
  std::optional<double> seconds_left, longest_left;
  bool measured = false;  // the two come from the jobs that are done; else from what the list expects

  int64_t left() const { return jobs - done; }
};

// store: null where nothing has been begun.
JobPlan plan_jobs(const JobList& list, const JobStore* store);

// The seconds that each job may take: the list's expectation, scaled so that it fits the jobs that are done; their mean
// where the list has none. {} where nothing is known.
std::vector<double> expected_seconds(const JobList& list, const JobStore* store);

// "pmoe/fig4: 27 jobs, 10 done, 17 left (1 failed before, 2 running); expected 0.24 hours of computing, 0.12 hours with
// 2 processes (from the jobs that are done)"
std::string plan_text(const JobPlan& plan, int64_t processes);
// {"name", "jobs", "done", "left", "failed", "running", "hours_done", "expected_hours", "longest_hours", "estimate"}:
// the two expected ones null where nothing is known; "estimate" is "measured", "declared" or null.
Json plan_json(const JobPlan& plan);

}  // namespace sparsight
