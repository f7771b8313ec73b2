// Runs a figure of a paper again: its jobs, the table, what is claimed.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/jobs/plan.h"
#include "sparsight/reproduce/figure.h"

namespace sparsight {

struct FigureRequest {
  FigureRun run;          // `folder` "": default_folder()
  int64_t processes = 1;  // that do jobs; one: this process
  // How a process is started that calls work_on_figure() for the same run: the program, then its arguments. {}: all
  // jobs are done in this process.
  std::vector<std::string> worker_command;
};

struct FailedJob {
  Json settings;
  std::string error;
};

// All that the files of a result are made of.
struct FigureOutcome {
  const Figure* figure = nullptr;
  FigureRun run;
  std::string synthetic;  // the synthetic substitute for the paper's data, or ""
  ResultTable table;
  std::vector<Claim> claims;
  std::vector<FailedJob> failed;
  double seconds = 0;  // that all jobs took, one after the other
};

// "runs/reproduce/pmoe/fig4-small"
std::string default_folder(const Figure& figure, Scale scale);

// Says what is planned (jobs/plan.h) and does it. Jobs that are done are not done again; those that failed earlier are
// tried once more. Raises Error where it was interrupted, or where the folder is of something else.
FigureOutcome run_figure(const Figure& figure, const FigureRequest& request);

// What a process started by run_figure() does: jobs, until none is left that no other process is at.
void work_on_figure(const Figure& figure, const FigureRun& run);

// What run_figure() would do, without doing it. Makes no folder.
JobPlan plan_figure(const Figure& figure, const FigureRun& run);

// Writes a script for sbatch (jobs/slurm.h) whose tasks do the jobs that are left, `tasks` of them at most.
// task_command: how a process is started that calls work_on_figure_task(), the number of the task to be appended to its
// last word. Afterwards run_figure() makes the result.
struct FigureArray {
  std::string file;
  int64_t tasks = 1000, threads = 1;
  std::vector<std::string> task_command;
};
void write_figure_array(const Figure& figure, const FigureRun& run, const FigureArray& array);
TaskResult work_on_figure_task(const Figure& figure, const FigureRun& run, const ArrayTask& task);

}  // namespace sparsight
