#include "cli/cmd_reproduce.h"

#include <filesystem>
#include <memory>

#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight::cli {
namespace {

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
                  "Python with vl-convert-python, to save charts as PNG and SVG (default: SPARSIGHT_PYTHON, or that of "
                  "the program's repository, or python3)")
      ->type_name("PROGRAM");
  verb.add_flag("--json", arguments.json, "Print the result or the list as JSON");
  verb.add_option("--worker", arguments.worker)->group("");            // internal, set by --jobs: the parent process
  verb.add_option("--task", arguments.task)->group("");                // internal, set by --slurm: "3/27"
  verb.add_option("--fingerprint", arguments.fingerprint)->group("");  // internal, set by --jobs: of the data
}

CLI::Option* add_processes_option(CLI::App& verb, ReproduceArguments& arguments) {
  return arguments.launch.declare(verb,
                                  "Run jobs in so many ranks on this machine, instead of --jobs; ranks of several "
                                  "hosts share a run folder");
}

// of_figures: a flag is given that figures alone have. processes: --processes is.
void check_figure_flags(const ReproduceArguments& arguments, bool of_figures, bool processes) {
  if ((arguments.what == "show") == arguments.figure.empty())
    fail_usage("show, and nothing else, is followed by a figure: sparsight reproduce show pmoe/fig4");
  if (processes && (arguments.what == "show" || arguments.what == "list"))
    fail_usage("--processes runs the jobs of a figure; leave it out for ", arguments.what);
  if (arguments.what.ends_with(".toml") && of_figures)
    fail_usage(
        "--scale, --set, --jobs, --processes, --threads, --plan and --slurm apply to figures only; leave them out for "
        "a configuration");
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
      verb->add_option("--scale", arguments->scale,
                       "smoke (seconds), small (minutes to hours, see --plan), paper (the paper's sizes)")
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
  CLI::Option* processes = add_processes_option(*verb, *arguments)->excludes(jobs)->excludes(plan)->excludes(slurm);
  verb->callback([arguments, scale, jobs, threads, plan, slurm, processes] {
    const bool of_figures = *scale || *jobs || *processes || *threads || *plan || *slurm || !arguments->task.empty() ||
                            !arguments->overrides.empty();
    check_figure_flags(*arguments, of_figures, processes->count() > 0);
    run_reproduce(*arguments);
  });
}

}  // namespace sparsight::cli
