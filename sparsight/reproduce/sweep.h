// Does the jobs of a figure, each once, in this process or spread over several. Processes meet in the run's folder
// (job_store.h) and nowhere else: more of them may be started at any time, on other machines too, and any may be
// killed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/reproduce/figure.h"
#include "sparsight/reproduce/job_store.h"

namespace sparsight {

struct Sweep {
  const Figure& figure;
  const FigureRun& run;
  const std::vector<Json>& jobs;  // figure.jobs(run)
  const JobStore& store;

  bool is_over(const Json& job) const { return store.is_done(job) || store.has_failed(job); }
};

// One pass over the jobs in their order: does those that no other process is at, and stops where interrupted() says so.
// A job that raises an error is recorded as failed. Raises Error where the folder cannot be written.
void work_once(const Sweep& sweep, const std::function<void()>& after_each = {});

// Until every job is done or failed, by this process or another; with a line of progress. Raises Error where it was
// interrupted.
void work_here(const Sweep& sweep);
// The same in `processes` processes, each started with `command`, which is to come to work_once() on the same sweep.
void work_in_processes(const Sweep& sweep, const std::vector<std::string>& command, int64_t processes);

}  // namespace sparsight
