// The parts of `sparsight dg` that do many runs: sweep and ablate.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>

#include "cli/cmd_dg.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/program_path.h"
#include "cli/work/run_in_group.h"
#include "cli/work/to_dg_run.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/dg/ablation_run.h"
#include "sparsight/dg/sweep.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/jobs/plan.h"
#include "sparsight/jobs/shared_jobs.h"
#include "sparsight/jobs/slurm.h"

namespace sparsight::cli {
namespace {

// The arguments of a run in a command that repeats them.
void append_run(std::vector<std::string>& command, const DgRunArguments& run) {
  command.push_back("--dataset=" + run.set);
  command.push_back(cat("--image-size=", run.image_size));
  if (!run.data.empty()) command.push_back("--data=" + run.data);
  if (!run.model.empty()) command.push_back("--model=" + run.model);
  if (run.steps > 0) command.push_back(cat("--steps=", run.steps));
  if (run.eval_every > 0) command.push_back(cat("--eval-every=", run.eval_every));
  for (const std::string& assignment : run.overrides) command.push_back("--set=" + assignment);
}

std::vector<std::string> to_command(const DgSweepArguments& arguments) {
  std::vector<std::string> command{program_path(),
                                   "dg",
                                   "sweep",
                                   "--algorithms=" + join(arguments.algorithms, ","),
                                   cat("--trials=", arguments.trials),
                                   cat("--hparams=", arguments.hparams)};
  append_run(command, arguments.run);
  if (arguments.no_pairs) command.emplace_back("--no-pairs");
  if (arguments.single_source) command.emplace_back("--single-source");
  if (!arguments.models.empty()) command.push_back("--models=" + join(arguments.models, ","));
  if (!arguments.sets.empty()) command.push_back("--datasets=" + join(arguments.sets, ","));
  return command;
}

std::vector<std::string> to_command(const DgAblateArguments& arguments) {
  std::vector<std::string> command{program_path(), "dg", "ablate", "--algorithm=" + arguments.algorithm,
                                   cat("--trials=", arguments.trials)};
  append_run(command, arguments.run);
  if (!arguments.only.empty()) command.push_back("--only=" + join(arguments.only, ","));
  for (const std::string& factor : arguments.vary) command.push_back("--vary=" + factor);
  std::vector<std::string> environments;
  for (const std::int64_t environment : arguments.test_envs) environments.push_back(std::to_string(environment));
  if (!environments.empty()) command.push_back("--test-envs=" + join(environments, ","));
  return command;
}

[[noreturn]] void fail_runs(const JobList& list, const JobStore& store) {
  int64_t count = 0;
  std::string first;
  for (const Json& settings : list.settings)
    if (const auto error = store.failure(settings)) {
      if (count++ == 0) first = *error;
    }
  fail(count, count == 1 ? " run" : " runs", " failed; first: ", first, "; run the same command to retry");
}

// A list of runs, and what is done with it.
struct ManyRuns {
  std::string verb;  // "sweep"
  std::string of;    // what the folder holds
  JobList list;
  std::vector<std::string> command;  // that repeats the arguments, but for the folder and the task
  std::function<void(const JobStore& store)> print;
};

void write_array(const ManyRuns& runs, const DgJobsArguments& jobs, const JobStore& store) {
  SlurmArray array = slurm_array(runs.list, store, jobs.tasks);
  array.working_folder = std::filesystem::current_path().string();
  array.log_folder = std::filesystem::absolute(jobs.out).string();
  array.command = runs.command;
  array.command.push_back("--out=" + jobs.out);
  array.command.emplace_back("--task=");
  write_slurm_script(jobs.slurm, array);
}

// All ranks find each other's results in the folder.
void work_and_print(const ManyRuns& runs, const DgJobsArguments& jobs, dist::Group& group) {
  const JobStore store = shared_job_store(group, runs.list, jobs.out, runs.of, "--out");
  work_with_ranks(runs.list, store, group);
  if (!group.leads()) return;
  const auto any = [&](const auto& what) { return std::ranges::any_of(runs.list.settings, what); };
  if (any([&](const Json& run) { return store.is_done(run); })) runs.print(store);
  if (any([&](const Json& run) { return store.has_failed(run); })) fail_runs(runs.list, store);
}

void work_on(const ManyRuns& runs, const DgJobsArguments& jobs, dist::Group& group) {
  if (jobs.out.empty() && !jobs.plan)
    fail_usage("dg ", runs.verb, " needs a folder for its runs: --out DIR, or --plan");
  if (!jobs.out.empty()) check_can_run(runs.list);
  const std::optional<ArrayTask> task =
      jobs.task.empty() ? std::nullopt : std::optional(parse_array_task(jobs.task));  // before the folder is made
  if (group.size() > 1 && (jobs.plan || !jobs.slurm.empty() || task))
    fail_usage("--plan, --slurm and --task are for one process; leave them out where several do the runs");
  if (!group.leads()) return work_and_print(runs, jobs, group);  // rank 0 makes the folder first
  const std::optional<JobStore> begun = jobs.out.empty() ? std::nullopt : JobStore::open(jobs.out, runs.of, "--out");
  const std::string plan =
      plan_text(plan_jobs(runs.list, begun ? &*begun : nullptr), jobs.slurm.empty() ? 1 : jobs.tasks);
  if (jobs.plan) {
    output() << plan << "\n";
    return;
  }
  if (!jobs.slurm.empty()) {
    write_array(runs, jobs, JobStore(jobs.out, runs.of, "--out"));
    output() << plan << "\nwrote " << printable(jobs.slurm)
             << ": submit it with sbatch; when its tasks have finished, the same command without --slurm prints the "
                "tables\n";
    return;
  }
  log_info(plan);
  if (begun) warn_of_other_kernels(begun->environment());
  if (!task) return work_and_print(runs, jobs, group);
  const JobStore store(jobs.out, runs.of, "--out");
  if (work_on_task(runs.list, store, *task).failed > 0) fail_runs(runs.list, store);
}

void work_in_group(const ManyRuns& runs, const DgJobsArguments& jobs) {
  run_in_group(jobs.launch, [&](const dist::GroupPtr& group) { work_on(runs, jobs, *group); });
}

// What a folder of runs holds, down to what their tables cannot average over.
std::string described(const std::string& what, const DgRun& run) {
  const std::string common = common_text(run);
  return common.empty() ? what : what + ", " + common;
}

DgSweep to_sweep(const DgSweepArguments& arguments) {
  DgSweep sweep{to_dg_run(arguments.run), arguments.algorithms, arguments.trials, arguments.hparams,
                !arguments.no_pairs};
  sweep.models = arguments.models, sweep.sets = arguments.sets, sweep.single_source = arguments.single_source;
  return sweep;
}

DgAblation to_ablation(const DgAblateArguments& arguments) {
  DgAblation ablation;
  ablation.run = to_dg_run(arguments.run);
  ablation.run.algorithm = arguments.algorithm;
  ablation.trials = arguments.trials, ablation.test_envs = arguments.test_envs;
  if (arguments.only == std::vector<std::string>{"none"})
    ablation.factors.clear();
  else if (!arguments.only.empty())
    ablation.factors = ablations_named(arguments.only);
  for (const std::string& factor : arguments.vary) ablation.factors.push_back(own_ablation(factor));
  return ablation;
}

}  // namespace

void run_dg_sweep(const DgSweepArguments& arguments) {
  begin_interruptible_work();
  const DgSweep sweep = to_sweep(arguments);
  work_in_group(
      {"sweep", described("a sweep of " + sets_text(sweep), sweep.run), sweep_jobs(sweep), to_command(arguments),
       [&](const JobStore& store) {
         run_dg_table({store.folder(), arguments.jobs.format, "", arguments.published});
       }},
      arguments.jobs);
}

void run_dg_ablate(const DgAblateArguments& arguments) {
  begin_interruptible_work();
  const DgAblation ablation = to_ablation(arguments);
  const std::vector<AblationRow> rows = ablation_rows(ablation);
  const TableFormat format = table_format(arguments.jobs.format);
  work_in_group(
      {"ablate", described("ablations on " + arguments.run.set, ablation.run), ablation_jobs(ablation, rows),
       to_command(arguments),
       [&](const JobStore& store) { output() << formatted({ablation_table(ablation, rows, store)}, format); }},
      arguments.jobs);
}

}  // namespace sparsight::cli
