// The parts of `sparsight dg` that do many runs: sweep and ablate.
#include "cli/cmd_dg.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/many_runs.h"
#include "cli/work/program_path.h"
#include "cli/work/to_dg_run.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/dg/ablation_run.h"
#include "sparsight/dg/sweep.h"

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
      {"dg sweep", described("a sweep of " + sets_text(sweep), sweep.run), sweep_jobs(sweep), to_command(arguments),
       [&](const JobStore& store) {
         run_dg_table({store.folder(), arguments.format, "", arguments.published});
       }},
      arguments.jobs);
}

void run_dg_ablate(const DgAblateArguments& arguments) {
  begin_interruptible_work();
  const DgAblation ablation = to_ablation(arguments);
  const std::vector<AblationRow> rows = ablation_rows(ablation);
  const TableFormat format = table_format(arguments.format);
  work_in_group(
      {"dg ablate", described("ablations on " + arguments.run.set, ablation.run), ablation_jobs(ablation, rows),
       to_command(arguments),
       [&](const JobStore& store) { output() << formatted({ablation_table(ablation, rows, store)}, format); }},
      arguments.jobs);
}

}  // namespace sparsight::cli
