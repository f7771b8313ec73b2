// Reproduces a figure of a paper: runs its jobs, builds the table and checks the claims.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/jobs/plan.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight {

struct FigureRequest {
  FigureRun run;          // `folder` "": default_folder()
  int64_t processes = 1;  // that run jobs; 1: this process
  // Starts a process that calls work_on_figure() for the same run: the program, then its arguments. {}: all jobs run in
  // this process.
  std::vector<std::string> worker_command;
};

struct FailedJob {
  Json settings;
  std::string error;
};

// Everything that the result files are made from.
struct FigureOutcome {
  const Figure* figure = nullptr;
  FigureRun run;
  std::string synthetic;  // the synthetic substitute for the paper's data, or ""
  ResultTable table;
  std::vector<Claim> claims;
  std::vector<FailedJob> failed;
  double seconds = 0;  // total over all jobs
};

// "runs/reproduce/pmoe/fig4-small"
std::string default_folder(const Figure& figure, Scale scale);

// Logs the plan (jobs/plan.h) and runs it. Finished jobs are not repeated; those that failed earlier are retried once.
// Raises Error if interrupted, or if the folder belongs to another figure, scale or data.
FigureOutcome run_figure(const Figure& figure, const FigureRequest& request);

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
