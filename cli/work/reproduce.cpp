#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "cli/cmd_reproduce.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/key_values.h"
#include "cli/work/program_path.h"
#include "cli/work/run_in_group.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/sets/data_root.h"
#include "sparsight/dist/rank_zero.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/papers/register_figures.h"
#include "sparsight/reproduce/config_claim.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/run_figure.h"
#include "sparsight/reproduce/write_outcome.h"

namespace sparsight::cli {
namespace {

void print_list(bool json) {
  Json list = Json::array();
  TextTable table{{"figure", "shows", "needs", "takes"}, {false, false, false, false}, {}};
  for (const Figure& figure : figures()) {
    table.rows.push_back({figure.name, figure.title, figure.needs, figure.duration});
    list.push_back(
        {{"name", figure.name}, {"title", figure.title}, {"needs", figure.needs}, {"duration", figure.duration}});
  }
  output() << (json ? json_text(list, 2) + "\n" : markdown_table(table));
}

FigureRun to_figure_run(const ReproduceArguments& arguments) {
  FigureRun run{find_scale(arguments.scale), "", arguments.run};
  if (!arguments.synthetic) run.data = arguments.data.empty() ? data_home() : arguments.data;
  run.settings = key_values(arguments.overrides);
  run.fingerprint = arguments.fingerprint;
  return run;
}

// What a figure is, where its data goes, and its settings at a scale.
void print_figure(const ReproduceArguments& arguments) {
  const Figure& figure = find_figure(arguments.figure);
  const Scale scale = find_scale(arguments.scale);
  TextTable settings{
      {"setting", "default at scale " + arguments.scale, "allowed", "meaning"}, {false, false, false, false}, {}};
  Json list = Json::array();
  for (const SettingHelp& help : settings_help(figure, scale)) {
    settings.rows.push_back({help.name, help.value, help.allowed.empty() ? help.type : help.allowed, help.help});
    list.push_back({{"name", help.name},
                    {"type", help.type},
                    {"default", help.value},
                    {"allowed", help.allowed},
                    {"help", help.help}});
  }
  if (arguments.json) {
    output() << json_text({{"name", figure.name},
                           {"title", figure.title},
                           {"needs", figure.needs},
                           {"duration", figure.duration},
                           {"scale", arguments.scale},
                           {"settings", list}},
                          2)
             << "\n";
    return;
  }
  output() << figure.name << ": " << figure.title << "\nneeds: " << figure.needs << "\ntakes: " << figure.duration
           << "\n";
  for (const DataChoice& choice : figure.data)
    output() << "data:  " << choice.set << " (see `sparsight data where " << choice.set << "`), or with --synthetic "
             << choice.substitute << "\n";
  output() << (list.empty() ? "\nno settings\n" : "\n" + markdown_table(settings));
}

// A worker process started by --jobs. It dies with its parent. On SIGTERM it starts no further
// job; the current one finishes or, if it trains, stops with a checkpoint.
void work(const ReproduceArguments& arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != arguments.worker) return;  // the parent is already gone
  signal(SIGTERM, [](int) { set_interrupted(true); });
  work_on_figure(find_figure(arguments.what), to_figure_run(arguments));
}

// The command that starts this program again for the same figure.
std::vector<std::string> to_command(const ReproduceArguments& arguments) {
  const FigureRun run = to_figure_run(arguments);
  std::vector<std::string> command = {program_path(), "reproduce", arguments.what, "--scale=" + arguments.scale,
                                      cat("--threads=", arguments.threads)};
  std::error_code ignored;
  if (arguments.synthetic)
    command.push_back("--synthetic");
  else if (std::filesystem::is_directory(run.data, ignored))  // the default may be missing where no data is read
    command.push_back("--data=" + run.data);
  if (!run.folder.empty()) command.push_back("--run=" + run.folder);
  for (const std::string& assignment : arguments.overrides) command.push_back("--set=" + assignment);
  return command;
}

std::vector<std::string> with(std::vector<std::string> command, const std::vector<std::string>& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

[[noreturn]] void fail_jobs(size_t count, const std::string& which) {
  fail(count, count == 1 ? " job" : " jobs", " failed", which, "; run the same command to retry");
}

// One task of the array written by --slurm.
void work_on_task(const ReproduceArguments& arguments) {
  const TaskResult result =
      work_on_figure_task(find_figure(arguments.what), to_figure_run(arguments), parse_array_task(arguments.task));
  log_info("task ", arguments.task, ": ", result.done, " jobs done, ", result.failed, " failed, ", result.elsewhere,
           " running in other processes");
  if (result.failed > 0) fail_jobs(static_cast<size_t>(result.failed), ", see failed.json in their folders");
}

void write_slurm(const ReproduceArguments& arguments) {
  const Figure& figure = find_figure(arguments.what);
  const FigureArray array{arguments.slurm, arguments.tasks, arguments.threads,
                          with(to_command(arguments), {"--task="})};
  FigureRun run = to_figure_run(arguments);
  figure_settings(figure, run);
  run.fingerprint = read_data(figure.data, run).fingerprint;
  write_figure_array(figure, run, array);
  output()
      << plan_text(plan_figure(figure, run), arguments.tasks) << "\nwrote " << printable(arguments.slurm)
      << ": submit it with sbatch; when its tasks have finished, the same command without --slurm writes the result\n";
}

void print_plan(const ReproduceArguments& arguments, int64_t processes) {
  const JobPlan plan = plan_figure(find_figure(arguments.what), to_figure_run(arguments));
  output() << (arguments.json ? json_text(plan_json(plan), 2) : plan_text(plan, processes)) << "\n";
}

void print_outcome(const ReproduceArguments& arguments, const FigureOutcome& outcome) {
  write_outcome(outcome, arguments.python);
  if (arguments.json) {
    output() << json_text(result_json(outcome), 2) << "\n";
  } else {
    output() << result_markdown(outcome) << "\nrun folder: " << printable(outcome.run.folder)
             << "\nreport: " << printable(outcome.run.folder) << "/report.html\n";
  }
  if (!outcome.failed.empty()) fail_jobs(outcome.failed.size(), "; first failure: " + failure_text(outcome.failed[0]));
}

// Rank 0 reads all data, and tells the others what it is.
void reproduce_in_group(const ReproduceArguments& arguments, const Figure& figure, FigureRequest request,
                        dist::Group& group) {
  const std::string fingerprint = dist::from_rank_zero(group, [&] {
    request.data = read_data(figure.data, request.run);
    return request.data->fingerprint;
  });
  if (!group.leads()) {
    request.run.fingerprint = fingerprint;
    request.data = read_data(figure.data, request.run);
  }
  if (!request.data->fingerprint.empty())
    request.worker_command.push_back("--fingerprint=" + request.data->fingerprint);
  const FigureOutcome outcome = run_figure(figure, request, group);
  if (group.leads()) print_outcome(arguments, outcome);
}

void reproduce_figure(const ReproduceArguments& arguments) {
  at::set_num_threads(static_cast<int>(arguments.threads));
  if (arguments.worker > 0) return work(arguments);
  if (!arguments.task.empty()) return work_on_task(arguments);
  if (!arguments.slurm.empty()) return write_slurm(arguments);
  const Figure& figure = find_figure(arguments.what);
  FigureRequest request;
  request.run = to_figure_run(arguments);
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  request.processes = arguments.jobs > 0 ? arguments.jobs : std::max<int64_t>(1, cores / arguments.threads);
  if (arguments.plan) return print_plan(arguments, request.processes);
  request.worker_command = with(to_command(arguments), {cat("--worker=", getpid()), "--quiet", "--log-json"});
  figure_settings(figure, request.run);  // a wrong --set is an error before gigabytes are read
  run_in_group(arguments.launch,
               [&](const dist::GroupPtr& group) { reproduce_in_group(arguments, figure, request, *group); });
}

void check_config(const ReproduceArguments& arguments) {
  if (!arguments.data.empty()) setenv("SPARSIGHT_DATA", arguments.data.c_str(), 1);
  const std::string folder = arguments.run.empty() ? default_claim_folder(arguments.what) : arguments.run;
  std::ostringstream discarded;
  const std::vector<Claim> claims = reproduce_config(arguments.what, folder, arguments.json ? discarded : output());
  if (arguments.json) {
    output() << read_file(folder + "/claims.json", kMaxTextBytes);
  } else {
    output() << "\n" << markdown_table(claim_table(claims));
  }
}

}  // namespace

void run_reproduce(const ReproduceArguments& arguments) {
  begin_interruptible_work();
  if (arguments.what == "show") return print_figure(arguments);
  if (arguments.what == "list") return print_list(arguments.json);
  if (!arguments.what.ends_with(".toml")) return reproduce_figure(arguments);
  check_config(arguments);
}

}  // namespace sparsight::cli
