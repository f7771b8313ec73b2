#include "cli/work/run_in_group.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "cli/work/program_path.h"
#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/dist/address.h"
#include "sparsight/dist/join.h"
#include "sparsight/dist/launch.h"
#include "sparsight/dist/rank_zero.h"

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

// The error of a rank other than 0: quiet where rank 0 says the same, else with the rank's name.
[[noreturn]] void fail_as_rank(const dist::Group& group, const Error& error) {
  if (interrupted() || dynamic_cast<const dist::RankZeroError*>(&error)) {
    std::fflush(nullptr);
    _exit(error.exit_code());
  }
  const std::string text = error.what();
  const std::string named =
      text.starts_with("rank ") ? text : dist::rank_name(group.rank(), group.size()) + ": " + text;
  if (error.exit_code() == UsageError("").exit_code()) fail_usage(named);
  fail(named);
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
  try {
    work(group);
  } catch (const Error& error) {
    if (group->leads()) throw;
    fail_as_rank(*group, error);
  }
}

}  // namespace sparsight::cli
