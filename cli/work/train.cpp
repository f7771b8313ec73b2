#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "cli/cmd_train.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/program_path.h"
#include "cli/work/read_config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/dist/join.h"
#include "sparsight/dist/launch.h"
#include "sparsight/train/train_run.h"

namespace sparsight::cli {

namespace {

// This program's own command line, without the flags of the launcher.
std::vector<std::string> rank_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> command;
  for (std::string argument; std::getline(file, argument, '\0');) {
    const bool mine = argument == "--processes" || argument == "--max-restarts";
    if (mine)
      std::getline(file, argument, '\0');  // its value
    else if (!argument.starts_with("--processes=") && !argument.starts_with("--max-restarts="))
      command.push_back(argument);
  }
  if (command.empty()) fail("cannot read /proc/self/cmdline; is /proc mounted?");
  command.front() = program_path();
  return command;
}

void train_in_group(const TrainArguments& arguments, const dist::GroupPtr& group) {
  if (!group->leads()) {  // rank 0 speaks for all
    LogSettings settings = log_settings();
    settings.quiet = true;
    set_log(settings);
  }
  if (!arguments.resume.empty()) {
    resume_training(arguments.resume, {arguments.on_nan, arguments.allow_changed_config}, output(), group);
    return;
  }
  ConfigArguments config = arguments.config;
  if (!arguments.init_from.empty()) config.overrides.push_back("train.init_from=" + arguments.init_from);
  if (arguments.allow_missing) config.overrides.push_back("train.allow_missing=true");
  if (!arguments.on_nan.empty()) config.overrides.push_back("train.on_nan=" + arguments.on_nan);
  const std::string name = std::filesystem::path(config.file).stem().string();
  start_training(resolved_config(config), arguments.out.empty() ? "runs/" + name : arguments.out, arguments.overwrite,
                 output(), GoOn::resume_flag, group);
}

}  // namespace

void run_train(const TrainArguments& arguments) {
  begin_interruptible_work();
  if (arguments.processes == 0) return train_in_group(arguments, dist::join_group());
  if (!dist::is_available())
    fail("--processes needs a build with gloo; install its headers (libgloo-dev) and build again");
  const int code = dist::launch({rank_command(), arguments.processes, arguments.max_restarts});
  std::fflush(nullptr);
  if (code != 0) _exit(code);  // the ranks have said why
}

}  // namespace sparsight::cli
