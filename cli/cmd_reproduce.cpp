#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "cli/key_values.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/limits.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/sets/data_root.h"
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

struct ReproduceArguments {
  std::string what, figure, scale = "small", data, run, python, slurm, task, fingerprint;
  std::vector<std::string> overrides;
  int64_t jobs = 0, threads = 1, worker = 0, tasks = 1000;
  bool synthetic = false, json = false, plan = false;
};

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

FigureRun run_of(const ReproduceArguments& arguments) {
  FigureRun run{scale_of(arguments.scale), "", arguments.run};
  if (!arguments.synthetic) run.data = arguments.data.empty() ? data_home() : arguments.data;
  run.settings = key_values(arguments.overrides);
  run.fingerprint = arguments.fingerprint;
  return run;
}

// What a figure is, where its data goes, and its settings at a scale.
void print_figure(const ReproduceArguments& arguments) {
  const Figure& figure = find_figure(arguments.figure);
  const Scale scale = scale_of(arguments.scale);
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
  work_on_figure(find_figure(arguments.what), run_of(arguments));
}

// The command that starts this program again for the same figure.
std::vector<std::string> command_of(const ReproduceArguments& arguments) {
  const FigureRun run = run_of(arguments);
  std::vector<std::string> command = {std::filesystem::read_symlink("/proc/self/exe").string(), "reproduce",
                                      arguments.what, "--scale=" + arguments.scale,
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
      work_on_figure_task(find_figure(arguments.what), run_of(arguments), parse_array_task(arguments.task));
  log_info("task ", arguments.task, ": ", result.done, " jobs done, ", result.failed, " failed, ", result.elsewhere,
           " running in other processes");
  if (result.failed > 0) fail_jobs(static_cast<size_t>(result.failed), ", see failed.json in their folders");
}

void write_slurm(const ReproduceArguments& arguments) {
  const Figure& figure = find_figure(arguments.what);
  const FigureArray array{arguments.slurm, arguments.tasks, arguments.threads,
                          with(command_of(arguments), {"--task="})};
  FigureRun run = run_of(arguments);
  figure_settings(figure, run);
  run.fingerprint = read_data(figure.data, run).fingerprint;
  write_figure_array(figure, run, array);
  output()
      << plan_text(plan_figure(figure, run), arguments.tasks) << "\nwrote " << printable(arguments.slurm)
      << ": submit it with sbatch; when its tasks have finished, the same command without --slurm writes the result\n";
}

void print_plan(const ReproduceArguments& arguments, int64_t processes) {
  const JobPlan plan = plan_figure(find_figure(arguments.what), run_of(arguments));
  output() << (arguments.json ? json_text(plan_json(plan), 2) : plan_text(plan, processes)) << "\n";
}

void reproduce_figure(const ReproduceArguments& arguments) {
  at::set_num_threads(static_cast<int>(arguments.threads));
  if (arguments.worker > 0) return work(arguments);
  if (!arguments.task.empty()) return work_on_task(arguments);
  if (!arguments.slurm.empty()) return write_slurm(arguments);
  const Figure& figure = find_figure(arguments.what);
  FigureRequest request;
  request.run = run_of(arguments);
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  request.processes = arguments.jobs > 0 ? arguments.jobs : std::max<int64_t>(1, cores / arguments.threads);
  if (arguments.plan) return print_plan(arguments, request.processes);
  request.worker_command = with(command_of(arguments), {cat("--worker=", getpid()), "--quiet", "--log-json"});
  figure_settings(figure, request.run);  // a wrong --set is an error before gigabytes are read
  request.data = read_data(figure.data, request.run);
  if (!request.data->fingerprint.empty())
    request.worker_command.push_back("--fingerprint=" + request.data->fingerprint);
  const FigureOutcome outcome = run_figure(figure, request);
  write_outcome(outcome, arguments.python);
  if (arguments.json) {
    output() << json_text(result_json(outcome), 2) << "\n";
  } else {
    output() << result_markdown(outcome) << "\nrun folder: " << printable(outcome.run.folder)
             << "\nreport: " << printable(outcome.run.folder) << "/report.html\n";
  }
  if (!outcome.failed.empty()) fail_jobs(outcome.failed.size(), "; first failure: " + failure_text(outcome.failed[0]));
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

void add_data_options(CLI::App& verb, ReproduceArguments& arguments) {
  verb.add_option("--data", arguments.data,
                  "Folder of real datasets (default: SPARSIGHT_DATA, else data/); see sparsight data where")
      ->check([](const std::string& folder) {
        std::error_code ignored;
        if (std::filesystem::is_directory(folder, ignored)) return std::string();
        return cat("there is no folder ", printable(folder),
                   "; it has a folder for each dataset, as mnist/ (see sparsight data where)");
      })
      ->type_name("DIR");
  verb.add_flag("--synthetic", arguments.synthetic, "Use synthetic substitutes instead of real data");
  verb.add_option("--set", arguments.overrides,
                  "A setting of the figure (see sparsight reproduce show NAME); may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void add_output_options(CLI::App& verb, ReproduceArguments& arguments) {
  verb.add_option("--python", arguments.python,
                  "Python with vl-convert-python, to save charts as PNG and SVG (default: SPARSIGHT_PYTHON or python3)")
      ->type_name("PROGRAM");
  verb.add_flag("--json", arguments.json, "Print the result or the list as JSON");
  verb.add_option("--worker", arguments.worker)->group("");            // internal, set by --jobs: the parent process
  verb.add_option("--task", arguments.task)->group("");                // internal, set by --slurm: "3/27"
  verb.add_option("--fingerprint", arguments.fingerprint)->group("");  // internal, set by --jobs: of the data
}

}  // namespace

void add_reproduce(CLI::App& app) {
  auto arguments = std::make_shared<ReproduceArguments>();
  CLI::App* verb = add_verb(
      app, "reproduce", "Rerun a figure or table of a paper, compare its numbers with ours, and check its claims",
      "sparsight reproduce list\n"
      "sparsight reproduce show pmoe/fig4                                  (its settings)\n"
      "sparsight reproduce pmoe/fig4 --scale smoke --synthetic\n"
      "sparsight reproduce pmoe/fig4 --set trials=20 --set samples=[300,500]\n"
      "sparsight reproduce pmoe/fig4 --scale paper --data data --jobs 8   (after a kill, run it again to resume)\n"
      "sparsight reproduce pmoe/fig10 --scale paper --data data --plan     (how much work is left)\n"
      "sparsight reproduce pmoe/fig10 --scale paper --data data --slurm fig10.sh && sbatch fig10.sh\n"
      "sparsight reproduce configs/pmoe/joint_mnist.toml                  (train, then check its claims)");
  verb->add_option("what", arguments->what,
                   "list, a figure from that list such as pmoe/fig4, show and a figure, or a configuration file with "
                   "claims")
      ->required()
      ->type_name("NAME");
  verb->add_option("figure", arguments->figure, "The figure that show describes")->type_name("FIGURE");
  CLI::Option* scale =
      verb->add_option("--scale", arguments->scale, "smoke (seconds), small (minutes), paper (the paper's sizes)")
          ->check(CLI::IsMember({"smoke", "small", "paper"}))
          ->capture_default_str();
  add_data_options(*verb, *arguments);
  verb->add_option("--run", arguments->run,
                   "Run folder (default: runs/reproduce/NAME-SCALE); several processes may share it")
      ->type_name("DIR");
  CLI::Option* jobs =
      verb->add_option("--jobs", arguments->jobs, "Processes that run jobs in parallel (default: one per core)")
          ->check(CLI::Range(int64_t{1}, int64_t{1024}))
          ->type_name("N");
  CLI::Option* threads = verb->add_option("--threads", arguments->threads, "Threads per process")
                             ->check(CLI::Range(int64_t{1}, int64_t{1024}))
                             ->capture_default_str()
                             ->type_name("N");
  CLI::Option* plan = verb->add_flag("--plan", arguments->plan, "Print how many jobs are left and the estimated time");
  CLI::Option* slurm = verb->add_option("--slurm", arguments->slurm,
                                        "Run nothing; write an sbatch script whose array tasks run the remaining jobs")
                           ->type_name("FILE")
                           ->excludes(plan)
                           ->check([](const std::string& file) { return file.empty() ? "needs a file name" : ""; });
  verb->add_option("--tasks", arguments->tasks,
                   "Maximum number of tasks in that array (SLURM's own limit is MaxArraySize)")
      ->needs(slurm)
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}))
      ->capture_default_str()
      ->type_name("N");
  add_output_options(*verb, *arguments);
  interruptible(verb, [arguments, scale, jobs, threads, plan, slurm] {
    if ((arguments->what == "show") == arguments->figure.empty())
      fail_usage("show, and nothing else, is followed by a figure: sparsight reproduce show pmoe/fig4");
    if (arguments->what == "show") return print_figure(*arguments);
    if (arguments->what == "list") return print_list(arguments->json);
    if (!arguments->what.ends_with(".toml")) return reproduce_figure(*arguments);
    if (*scale || *jobs || *threads || *plan || *slurm || !arguments->task.empty() || !arguments->overrides.empty())
      fail_usage(
          "--scale, --set, --jobs, --threads, --plan and --slurm apply to figures only; leave them out for a "
          "configuration");
    check_config(*arguments);
  });
}

}  // namespace sparsight::cli
