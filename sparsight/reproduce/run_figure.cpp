#include "sparsight/reproduce/run_figure.h"

#include <algorithm>
#include <filesystem>

#include "sparsight/core/checksum.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/jobs/shared_jobs.h"
#include "sparsight/jobs/slurm.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/results.h"

namespace sparsight {
namespace {

// A figure's jobs, and the text that identifies them in their folder.
struct FigureJobs {
  FigureRun run;
  std::string of;
  RunData data;
  std::vector<Json> own;  // as of Figure::jobs
  JobList list;
};

std::string data_text(const RunData& data) {
  if (data.kind == RunData::Kind::none) return "no data";
  return data.is_synthetic() ? cat("synthetic substitute data (", data.text, ")") : "data " + data.fingerprint;
}

std::string jobs_text(const Figure& figure, const FigureRun& run, const RunData& data) {
  const std::string changed = changed_settings(figure, run);
  return cat(figure.name, " at scale ", scale_name(run.scale), changed.empty() ? "" : ", " + changed, ", ",
             data_text(data));
}

// What identifies every job of a run besides its own settings.
Json figure_identity(const Figure& figure, const FigureRun& run, const RunData& data) {
  return {{"figure", figure.name},
          {"scale", scale_name(run.scale)},
          {"settings", figure_settings(figure, run)},
          {"data", data.fingerprint}};
}

std::vector<Json> with_identity(std::vector<Json> jobs, const Json& identity) {
  for (Json& job : jobs) job["of"] = identity;
  return jobs;
}

// Raises Error for a malformed result.
Json checked_result(const Figure& figure, Json result) {
  if (!result.is_object()) fail("the job returned no measurements");
  for (const Measure& measure : figure.measures)
    if (const Json& value = member(result, measure.key); !value.is_number() && !value.is_null())
      fail("the job returned no number for ", measure.key);
  return result;
}

std::string default_folder(const Figure& figure, const FigureRun& run) {
  std::string changed = changed_settings(figure, run);
  std::erase_if(changed, [](char c) { return c == '"' || c == '/' || c == '[' || c == ']'; });
  std::replace(changed.begin(), changed.end(), ' ', '-');
  constexpr size_t kMax = 100;  // of a file's name
  if (changed.size() > kMax) changed = compute_checksum(changed);
  return cat("runs/reproduce/", figure.name, "-", scale_name(run.scale), changed.empty() ? "" : "-" + changed);
}

// data: of the run, if it has been read.
FigureJobs make_jobs(const Figure& figure, FigureRun run, const std::optional<RunData>& data = {}) {
  if (run.folder.empty()) run.folder = default_folder(figure, run);
  FigureJobs jobs{run, {}, data ? *data : read_data(figure.data, run), {}, {}};
  jobs.of = jobs_text(figure, run, jobs.data);
  jobs.own = figure.jobs(run);
  jobs.list.name = figure.name;
  jobs.list.settings = with_identity(jobs.own, figure_identity(figure, run, jobs.data));
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

JobStore make_store(const FigureJobs& jobs) { return JobStore(jobs.run.folder, jobs.of); }

}  // namespace

std::vector<Json> stored_jobs(const Figure& figure, const FigureRun& run) {
  return make_jobs(figure, run).list.settings;
}

std::string run_text(const Figure& figure, const FigureRun& run) {
  return jobs_text(figure, run, read_data(figure.data, run));
}

namespace {

// The outcome of jobs that are over.
FigureOutcome outcome_of(const Figure& figure, const FigureJobs& jobs, const JobStore& store) {
  FigureOutcome outcome;
  outcome.figure = &figure;
  outcome.run = jobs.run;
  outcome.data = jobs.data;
  outcome.settings = figure_settings(figure, jobs.run);
  std::vector<Json> results;
  for (size_t i = 0; i < jobs.own.size(); ++i) {
    const Json job = jobs.list.settings[i];
    store.tidy(job);
    const auto done = store.read(job);
    results.push_back(done ? done->result : Json());
    if (done) {
      outcome.seconds += done->seconds;
      outcome.finished.push_back({jobs.own[i], done->result});
    } else if (const auto error = store.failure(job)) {
      outcome.failed.push_back({jobs.own[i], *error});
    } else {  // read() has said so
      outcome.failed.push_back({jobs.own[i], "its result was damaged after it was done"});
    }
  }
  outcome.table = make_table(figure, jobs.own, results, outcome.data.is_compared());
  outcome.claims = judged_claims(figure, outcome.table, outcome.run);
  return outcome;
}

}  // namespace

FigureOutcome run_figure(const Figure& figure, const FigureRequest& request, dist::Group& group) {
  const FigureJobs jobs = make_jobs(figure, request.run, request.data);
  const JobStore store = shared_job_store(group, jobs.list, jobs.run.folder, jobs.of);
  if (group.leads()) warn_of_other_kernels(store.environment());
  const bool alone = figure.alone || group.size() > 1 || request.processes <= 1 || request.worker_command.empty();
  const int64_t processes = figure.alone ? 1 : group.size() > 1 ? group.size() : alone ? 1 : request.processes;
  log_info(plan_text(plan_jobs(jobs.list, &store), processes));
  if (figure.alone && !group.leads()) return {};
  if (alone)
    work_with_ranks(jobs.list, store, group);
  else
    work_in_processes(jobs.list, store, request.worker_command, request.processes);
  return group.leads() ? outcome_of(figure, jobs, store) : FigureOutcome();
}

FigureOutcome run_figure(const Figure& figure, const FigureRequest& request) {
  dist::Group alone;
  return run_figure(figure, request, alone);
}

void work_on_figure(const Figure& figure, const FigureRun& run) {
  const FigureJobs jobs = make_jobs(figure, run);
  const JobStore store = make_store(jobs);
  warn_of_other_kernels(store.environment());
  work_once(jobs.list, store);
}

std::vector<Claim> judged_claims(const Figure& figure, const ResultTable& table, const FigureRun& run) {
  std::vector<Claim> claims;
  if (figure.claims) claims = figure.claims(table, run);
  if (run.scale == Scale::smoke)
    for (Claim& claim : claims) claim.holds.reset(), claim.withheld = true;
  return claims;
}

JobPlan plan_figure(const Figure& figure, const FigureRun& run) {
  const FigureJobs jobs = make_jobs(figure, run);
  const auto store = JobStore::open(jobs.run.folder, jobs.of);
  return plan_jobs(jobs.list, store ? &*store : nullptr);
}

void write_figure_array(const Figure& figure, const FigureRun& run, const FigureArray& array) {
  const FigureJobs jobs = make_jobs(figure, run);
  const JobStore store = make_store(jobs);
  SlurmArray slurm = slurm_array(jobs.list, store, array.tasks);
  slurm.working_folder = std::filesystem::current_path().string();
  slurm.log_folder = std::filesystem::absolute(jobs.run.folder).string();
  slurm.command = array.task_command;
  slurm.threads = array.threads;
  write_slurm_script(array.file, slurm);
}

TaskResult work_on_figure_task(const Figure& figure, const FigureRun& run, const ArrayTask& task) {
  const FigureJobs jobs = make_jobs(figure, run);
  return work_on_task(jobs.list, make_store(jobs), task);
}

}  // namespace sparsight
