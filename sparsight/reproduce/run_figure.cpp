#include "sparsight/reproduce/run_figure.h"

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/jobs/slurm.h"
#include "sparsight/reproduce/results.h"

namespace sparsight {
namespace {

// Which jobs a folder has: stored in its jobs.json, so that another figure, scale or data cannot use the folder.
std::string figure_jobs_text(const std::string& figure, const std::string& scale, const std::string& synthetic) {
  return cat(figure, " at scale ", scale, ", ",
             synthetic.empty() ? "real data" : cat("synthetic substitute data (", synthetic, ")"));
}

// A figure's jobs, and the text that identifies them in their folder.
struct FigureJobs {
  FigureRun run;
  std::string of;
  JobList list;
};

// Raises Error for a malformed result.
Json checked_result(const Figure& figure, Json result) {
  if (!result.is_object()) fail("the job returned no measurements");
  for (const Measure& measure : figure.measures)
    if (const Json& value = member(result, measure.key); !value.is_number() && !value.is_null())
      fail("the job returned no number for ", measure.key);
  return result;
}

FigureJobs jobs_of(const Figure& figure, FigureRun run) {
  if (run.folder.empty()) run.folder = default_folder(figure, run.scale);
  FigureJobs jobs{run, figure_jobs_text(figure.name, scale_name(run.scale), substitute_of(figure, run)), {}};
  jobs.list.name = figure.name;
  jobs.list.settings = figure.jobs(run);
  jobs.list.run = [&figure, run](const Json& settings, const std::string& folder) {
    FigureRun there = run;
    there.job_folder = folder;
    return checked_result(figure, figure.measure(settings, there));
  };
  if (figure.expected_seconds)
    jobs.list.expected_seconds = [&figure, run](const Json& settings) {
      return figure.expected_seconds(settings, run);
    };
  return jobs;
}

JobStore store_of(const FigureJobs& jobs) { return JobStore(jobs.run.folder, jobs.of); }

}  // namespace

std::string default_folder(const Figure& figure, Scale scale) {
  return cat("runs/reproduce/", figure.name, "-", scale_name(scale));
}

FigureOutcome run_figure(const Figure& figure, const FigureRequest& request) {
  const FigureJobs jobs = jobs_of(figure, request.run);
  const JobStore store = store_of(jobs);
  FigureOutcome outcome;
  outcome.figure = &figure;
  outcome.run = jobs.run;
  outcome.synthetic = substitute_of(figure, outcome.run);
  const bool alone = request.processes <= 1 || request.worker_command.empty();
  log_info(plan_text(plan_jobs(jobs.list, &store), alone ? 1 : request.processes));
  for (const Json& job : jobs.list.settings) store.forget_failure(job);
  if (alone) {
    work_here(jobs.list, store);
  } else {
    work_in_processes(jobs.list, store, request.worker_command, request.processes);
  }

  std::vector<Json> results;
  for (const Json& job : jobs.list.settings) {
    store.tidy(job);
    const auto done = store.read(job);
    results.push_back(done ? done->result : Json());
    if (done)
      outcome.seconds += done->seconds;
    else if (const auto error = store.failure(job))
      outcome.failed.push_back({job, *error});
  }
  outcome.table = make_table(figure, jobs.list.settings, results, !outcome.synthetic.empty());
  if (figure.claims) outcome.claims = figure.claims(outcome.table, outcome.run);
  return outcome;
}

void work_on_figure(const Figure& figure, const FigureRun& run) {
  const FigureJobs jobs = jobs_of(figure, run);
  work_once(jobs.list, store_of(jobs));
}

JobPlan plan_figure(const Figure& figure, const FigureRun& run) {
  const FigureJobs jobs = jobs_of(figure, run);
  const auto store = JobStore::open(jobs.run.folder, jobs.of);
  return plan_jobs(jobs.list, store ? &*store : nullptr);
}

void write_figure_array(const Figure& figure, const FigureRun& run, const FigureArray& array) {
  const FigureJobs jobs = jobs_of(figure, run);
  const JobStore store = store_of(jobs);
  SlurmArray slurm = slurm_array(jobs.list, store, array.tasks);
  slurm.working_folder = std::filesystem::current_path().string();
  slurm.log_folder = std::filesystem::absolute(jobs.run.folder).string();
  slurm.command = array.task_command;
  slurm.threads = array.threads;
  write_slurm_script(array.file, slurm);
}

TaskResult work_on_figure_task(const Figure& figure, const FigureRun& run, const ArrayTask& task) {
  const FigureJobs jobs = jobs_of(figure, run);
  return work_on_task(jobs.list, store_of(jobs), task);
}

}  // namespace sparsight
