#include "cli/work/many_runs.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "cli/output.h"
#include "cli/work/run_in_group.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/jobs/plan.h"
#include "sparsight/jobs/shared_jobs.h"
#include "sparsight/jobs/slurm.h"

namespace sparsight::cli {
namespace {

[[noreturn]] void fail_runs(const JobList& list, const JobStore& store) {
  int64_t count = 0;
  std::string first;
  for (const Json& settings : list.settings)
    if (const auto error = store.failure(settings)) {
      if (count++ == 0) first = *error;
    }
  fail(count, count == 1 ? " run" : " runs", " failed; first: ", first, "; run the same command to retry");
}

void write_array(const ManyRuns& runs, const JobsArguments& jobs, const JobStore& store) {
  SlurmArray array = slurm_array(runs.list, store, jobs.tasks);
  array.working_folder = std::filesystem::current_path().string();
  array.log_folder = std::filesystem::absolute(jobs.out).string();
  array.command = runs.command;
  array.command.push_back("--out=" + jobs.out);
  array.command.emplace_back("--task=");
  write_slurm_script(jobs.slurm, array);
}

// All ranks find each other's results in the folder.
void work_and_print(const ManyRuns& runs, const JobsArguments& jobs, dist::Group& group) {
  const JobStore store = shared_job_store(group, runs.list, jobs.out, runs.of, "--out");
  work_with_ranks(runs.list, store, group);
  if (!group.leads()) return;
  const auto any = [&](const auto& what) { return std::ranges::any_of(runs.list.settings, what); };
  if (any([&](const Json& run) { return store.is_done(run); })) runs.print(store);
  if (any([&](const Json& run) { return store.has_failed(run); })) fail_runs(runs.list, store);
}

}  // namespace

void work_on(const ManyRuns& runs, const JobsArguments& jobs, dist::Group& group) {
  if (jobs.out.empty() && !jobs.plan) fail_usage(runs.verb, " needs a folder for its runs: --out DIR, or --plan");
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

void work_in_group(const ManyRuns& runs, const JobsArguments& jobs) {
  run_in_group(jobs.launch, [&](const dist::GroupPtr& group) { work_on(runs, jobs, *group); });
}

}  // namespace sparsight::cli
