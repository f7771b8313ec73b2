#include "cli/work/run_in_group.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "cli/work/program_path.h"
#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/dist/join.h"
#include "sparsight/dist/launch.h"

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

}  // namespace

void run_in_group(const LaunchArguments& arguments, FunctionRef<void(const dist::GroupPtr&)> work) {
  if (arguments.processes > 0) {
    if (!dist::is_available())
      fail("--processes needs a build with gloo; install its headers (libgloo-dev) and build again");
    const int code = dist::launch({rank_command(), arguments.processes, arguments.max_restarts});
    std::fflush(nullptr);
    if (code != 0) _exit(code);  // the ranks have said why
    return;
  }
  const dist::GroupPtr group = dist::join_group();
  if (!group->leads()) {
    LogSettings settings = log_settings();
    settings.quiet = true;
    set_log(settings);
  }
  work(group);
}

}  // namespace sparsight::cli
