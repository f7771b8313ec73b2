// Reproduces a figure of a paper: runs its jobs, builds the table and checks the claims.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/dist/group.h"
#include "sparsight/jobs/plan.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight {

struct FigureRequest {
  FigureRun run;          // `folder` "": runs/reproduce/pmoe/fig4-small, with the settings that were changed
  int64_t processes = 1;  // that run jobs; 1: this process
  // Starts a process that calls work_on_figure() for the same run: the program, then its arguments. {}: all jobs run in
  // this process.
  std::vector<std::string> worker_command;
  std::optional<RunData> data = {};  // as read_data(); null: not read yet
};

struct FailedJob {
  Json settings;  // as of Figure::jobs
  std::string error;
};

// A finished job: its settings as of Figure::jobs, and all that it returned, more than the measures too.
struct FinishedJob {
  Json settings, result;
};

// Everything that the result files are made from.
struct FigureOutcome {
  const Figure* figure = nullptr;
  FigureRun run;
  RunData data;
  Json settings;  // of the figure, all of them
  ResultTable table;
  std::vector<FinishedJob> finished;
  std::vector<Claim> claims;
  std::vector<FailedJob> failed;
  double seconds = 0;  // total over all jobs
};

// The jobs of a run as they are stored: Figure::jobs, each with "of": figure, scale, settings and data of the run.
// Raises Error if data is missing.
std::vector<Json> stored_jobs(const Figure& figure, const FigureRun& run);

// The text that tells a run's folder from those of other runs: "pmoe/fig4 at scale small, trials=20, data
// 0123456789abcdef".
std::string run_text(const Figure& figure, const FigureRun& run);

// Logs the plan (jobs/plan.h) and runs it. Finished jobs are not repeated; those that failed earlier are retried once.
// At scale smoke no claim gets a verdict. Raises Error if interrupted, if data is missing, or if the folder belongs to
// another figure, scale, other settings or other data.
FigureOutcome run_figure(const Figure& figure, const FigureRequest& request);
// The same with jobs shared out over the ranks of a group, which all see the folder; no other processes are started.
// Rank 0 has the outcome; the others have nothing, but that their jobs are done.
FigureOutcome run_figure(const Figure& figure, const FigureRequest& request, dist::Group& group);

// The claims of a table with their verdicts, which scale smoke withholds: its numbers mean nothing.
std::vector<Claim> judged_claims(const Figure& figure, const ResultTable& table, const FigureRun& run);

// The work of a process started by run_figure(): runs jobs until all others are done or running elsewhere.
void work_on_figure(const Figure& figure, const FigureRun& run);

// What run_figure() would do, without doing it. Creates no folder.
JobPlan plan_figure(const Figure& figure, const FigureRun& run);

// Writes an sbatch script (jobs/slurm.h) with at most `tasks` array tasks that run the remaining jobs. task_command:
// starts a process that calls work_on_figure_task(); the task number is appended to its last word. Afterwards
// run_figure() writes the result.
struct FigureArray {
  std::string file;
  int64_t tasks = 1000, threads = 1;
  std::vector<std::string> task_command;
};
void write_figure_array(const Figure& figure, const FigureRun& run, const FigureArray& array);
TaskResult work_on_figure_task(const Figure& figure, const FigureRun& run, const ArrayTask& task);

}  // namespace sparsight
