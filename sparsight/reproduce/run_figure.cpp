#include "sparsight/reproduce/run_figure.h"

#include "sparsight/core/error.h"
#include "sparsight/reproduce/job_store.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/sweep.h"

namespace sparsight {
namespace {

SweepIdentity identity(const Figure& figure, const FigureRun& run) {
  return {figure.name, scale_name(run.scale), stand_in_of(figure, run)};
}

FigureRun with_folder(const Figure& figure, FigureRun run) {
  if (run.folder.empty()) run.folder = default_folder(figure, run.scale);
  return run;
}

}  // namespace

std::string default_folder(const Figure& figure, Scale scale) {
  return cat("runs/reproduce/", figure.name, "-", scale_name(scale));
}

FigureOutcome run_figure(const Figure& figure, const FigureRequest& request) {
  FigureOutcome outcome;
  outcome.figure = &figure;
  outcome.run = with_folder(figure, request.run);
  outcome.stand_in = stand_in_of(figure, outcome.run);
  const std::vector<Json> jobs = figure.jobs(outcome.run);
  const JobStore store(outcome.run.folder, identity(figure, outcome.run));
  const auto read_all = [&] {
    std::vector<Json> results;
    outcome.seconds = 0;
    for (const Json& job : jobs) {
      const auto done = store.read(job);
      results.push_back(done ? done->result : Json());
      if (done) outcome.seconds += done->seconds;
    }
    return results;
  };
  read_all();  // a damaged file is removed, so that its job is done again
  for (const Json& job : jobs) store.forget_failure(job);

  const Sweep sweep{figure, outcome.run, jobs, store};
  if (request.processes > 1 && !request.worker_command.empty()) {
    work_in_processes(sweep, request.worker_command, request.processes);
  } else {
    work_here(sweep);
  }

  for (const Json& job : jobs) store.tidy(job);
  outcome.table = make_table(figure, jobs, read_all(), !outcome.stand_in.empty());
  for (const Json& job : jobs)
    if (const auto error = store.failure(job); error && !store.is_done(job)) outcome.failed.push_back({job, *error});
  if (figure.claims) outcome.claims = figure.claims(outcome.table, outcome.run);
  return outcome;
}

void work_on_figure(const Figure& figure, const FigureRun& run) {
  const FigureRun there = with_folder(figure, run);
  const std::vector<Json> jobs = figure.jobs(there);
  const JobStore store(there.folder, identity(figure, there));
  work_once({figure, there, jobs, store});
}

}  // namespace sparsight
