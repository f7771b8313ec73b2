#include "cli/cmd_demo.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/cmd_explain.h"
#include "cli/cmd_report.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/train_run.h"

extern "C" const char sparsight_asset_demo_config_begin[], sparsight_asset_demo_config_end[];

namespace sparsight::cli {
namespace {

// configs/demo.toml, which is built into the program.
std::string demo_config() { return {sparsight_asset_demo_config_begin, sparsight_asset_demo_config_end}; }

void train(const DemoArguments& arguments, const std::vector<std::string>& overrides, const std::string& folder) {
  const Config demo = Config::from_text(demo_config(), "demo.toml");
  std::vector<std::string> ignored;
  const Config config = overridden(demo, overrides, config_sections(), &ignored);
  for (const std::string& line : ignored) log_info(line);
  start_training(resolve(config, config_sections()), folder, arguments.overwrite, output());
}

// Trains the counterpart without experts, and returns its folder.
std::string train_dense(const DemoArguments& arguments) {
  const std::string folder = arguments.out + "_dense";
  log_info("training the dense counterpart, which computes as much per image");
  std::vector<std::string> overrides = arguments.overrides;
  overrides.push_back("moe.blocks=[]");
  train(arguments, overrides, folder);
  return folder;
}

void print_next_steps(const std::string& run) {
  const std::string name = printable(run);
  const std::vector<std::pair<std::string, std::string>> steps{
      {"sparsight eval " + name, "accuracy, and the load of each expert"},
      {"sparsight attack " + name + " --attack pgd --eps 2/255", "how little it takes to fool the model"},
      {"sparsight export " + name + " --weights int8", "one file that runs without torch"},
      {"sparsight demo --print-config > my.toml", "a configuration to change"},
      {"sparsight train my.toml --set router.k=1", "one expert per token instead of two"}};
  size_t width = 0;
  for (const auto& [command, what] : steps) width = std::max(width, command.size());
  output() << "\nopen the report: " << printable(std::filesystem::absolute(run + "/report.html").string())
           << "\n\ntry next:\n";
  for (const auto& [command, what] : steps)
    output() << "  " << command << std::string(width + 2 - command.size(), ' ') << what << "\n";
}

}  // namespace

void run_demo(const DemoArguments& arguments) {
  if (arguments.print_config) {
    output() << demo_config();
    return;
  }
  begin_interruptible_work();
  log_info("training a small MoE model on generated images");
  train(arguments, arguments.overrides, arguments.out);
  ExplainArguments explain;
  explain.request.run = arguments.out;
  run_explain(explain);
  if (arguments.with_dense) {
    ReportArguments report;
    report.runs = {arguments.out};
    report.baselines = {train_dense(arguments)};
    report.format = "table";
    run_report(report);
    report.format = "html";
    run_report(report);
  }
  print_next_steps(arguments.out);
}

}  // namespace sparsight::cli
