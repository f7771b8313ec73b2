#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>

#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "cli/spin_briefly.h"
#include "cli/verbs.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/reproduce/config_claim.h"
#include "sparsight/reproduce/register_figures.h"
#include "sparsight/reproduce/result_text.h"
#include "sparsight/reproduce/results.h"
#include "sparsight/reproduce/run_figure.h"
#include "sparsight/reproduce/write_outcome.h"

namespace sparsight::cli {
namespace {

constexpr size_t kMostClaimBytes = 1 << 20;

struct ReproduceArguments {
  std::string what, scale = "small", data, run, python;
  int64_t jobs = 0, threads = 1, worker = 0;
  bool stand_in = false, json = false;
};

void print_list(bool json) {
  Json list = Json::array();
  TextTable table{{"figure", "shows", "needs", "takes"}, {false, false, false, false}, {}};
  for (const Figure& figure : figures()) {
    table.rows.push_back({figure.name, figure.title, figure.needs, figure.duration});
    list.push_back(
        {{"name", figure.name}, {"title", figure.title}, {"needs", figure.needs}, {"duration", figure.duration}});
  }
  std::cout << (json ? list.dump(2) + "\n" : markdown_table(table));
}

FigureRun run_of(const ReproduceArguments& arguments) {
  return {scale_of(arguments.scale), arguments.stand_in ? "" : arguments.data, arguments.run};
}

// A process that --jobs started. It ends with the one that started it, and after the job that it is at when told to.
void work(const ReproduceArguments& arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != arguments.worker) return;  // gone already
  signal(SIGTERM, [](int) { set_interrupted(true); });
  work_on_figure(find_figure(arguments.what), run_of(arguments));
}

std::vector<std::string> worker_command(const ReproduceArguments& arguments, const Figure& figure,
                                        const FigureRun& run) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(),
          "reproduce",
          figure.name,
          "--scale=" + arguments.scale,
          run.data.empty() ? "--stand-in" : "--data=" + run.data,
          "--run=" + run.folder,
          cat("--threads=", arguments.threads),
          cat("--worker=", getpid()),
          "--quiet",
          "--log-json"};
}

void reproduce_figure(const ReproduceArguments& arguments) {
  at::set_num_threads(static_cast<int>(arguments.threads));
  if (arguments.worker > 0) return work(arguments);
  const Figure& figure = find_figure(arguments.what);
  FigureRequest request;
  request.run = run_of(arguments);
  if (request.run.folder.empty()) request.run.folder = default_folder(figure, request.run.scale);
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  request.processes = arguments.jobs > 0 ? arguments.jobs : std::max<int64_t>(1, cores / arguments.threads);
  request.worker_command = worker_command(arguments, figure, request.run);
  const FigureOutcome outcome = run_figure(figure, request);
  write_outcome(outcome, arguments.python);
  if (arguments.json) {
    std::cout << result_json(outcome).dump(2) << "\n";
  } else {
    std::cout << result_markdown(outcome) << "\nrun folder: " << request.run.folder
              << "\nreport: " << request.run.folder << "/report.html\n";
  }
  if (!outcome.failed.empty())
    fail(outcome.failed.size(), outcome.failed.size() == 1 ? " job" : " jobs", " failed, the first with ",
         failure_text(outcome.failed[0]), "; the same command tries again");
}

void check_config(const ReproduceArguments& arguments) {
  if (!arguments.data.empty()) setenv("SPARSIGHT_DATA", arguments.data.c_str(), 1);
  const std::string folder = arguments.run.empty() ? default_claim_folder(arguments.what) : arguments.run;
  std::ostringstream unheard;
  const std::vector<Claim> claims =
      reproduce_config(arguments.what, folder, arguments.json ? unheard : static_cast<std::ostream&>(std::cout));
  if (arguments.json) {
    std::cout << read_file(folder + "/claims.json", kMostClaimBytes);
  } else {
    std::cout << "\n" << markdown_table(claim_table(claims));
  }
}

}  // namespace

void add_reproduce(CLI::App& app) {
  auto arguments = std::make_shared<ReproduceArguments>();
  if (const char* data = std::getenv("SPARSIGHT_DATA")) arguments->data = data;
  CLI::App* verb = add_verb(
      app, "reproduce", "Run a figure or table of a paper again: its numbers beside ours, and which claims hold",
      "sparsight reproduce list\n"
      "sparsight reproduce pmoe/fig4 --scale smoke\n"
      "sparsight reproduce pmoe/fig4 --scale paper --data data --jobs 8   (kill it, run it again: it goes on)\n"
      "sparsight reproduce configs/pmoe/joint_mnist.toml                  (train, then check what its header claims)");
  verb->add_option("what", arguments->what,
                   "list, a figure of that list such as pmoe/fig4, or a configuration with a claim")
      ->required()
      ->type_name("NAME");
  CLI::Option* scale =
      verb->add_option("--scale", arguments->scale, "smoke (seconds), small (minutes), paper (the paper's sizes)")
          ->check(CLI::IsMember({"smoke", "small", "paper"}))
          ->capture_default_str();
  verb->add_option("--data", arguments->data,
                   "Folder of real data sets (default: SPARSIGHT_DATA); without one, drawn data stands in")
      ->type_name("DIR");
  verb->add_flag("--stand-in", arguments->stand_in, "Take drawn data even where SPARSIGHT_DATA is set");
  verb->add_option("--run", arguments->run,
                   "Run folder (default: runs/reproduce/NAME-SCALE); may be shared by processes")
      ->type_name("DIR");
  CLI::Option* jobs =
      verb->add_option("--jobs", arguments->jobs, "Processes that do jobs side by side (default: one for each core)")
          ->check(CLI::Range(int64_t{1}, int64_t{1024}))
          ->type_name("N");
  CLI::Option* threads = verb->add_option("--threads", arguments->threads, "Threads of each process")
                             ->check(CLI::Range(int64_t{1}, int64_t{1024}))
                             ->capture_default_str()
                             ->type_name("N");
  verb->add_option("--python", arguments->python,
                   "Python with vl-convert-python, for charts as PNG and SVG (default: SPARSIGHT_PYTHON or python3)")
      ->type_name("PROGRAM");
  verb->add_flag("--json", arguments->json, "Print the result (of list: the list) as JSON");
  verb->add_option("--worker", arguments->worker)->group("");  // the process to work for: how --jobs starts others
  spin_briefly(verb);
  stoppable(verb, [arguments, scale, jobs, threads] {
    if (arguments->what == "list") return print_list(arguments->json);
    if (!arguments->what.ends_with(".toml")) return reproduce_figure(*arguments);
    if (*scale || *jobs || *threads)
      fail_usage("--scale, --jobs and --threads are for figures; a configuration is trained as it says");
    check_config(*arguments);
  });
}

}  // namespace sparsight::cli
