// --processes and --max-restarts, of commands whose work several processes share.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

namespace sparsight::cli {

struct LaunchArguments {
  int64_t processes = 0;     // 0: this process, or the group that torchrun started it in
  int64_t max_restarts = 0;  // after one was killed

  // shared: what the processes do, for --help.
  CLI::Option* declare(CLI::App& verb, const std::string& shared);
  void declare_restarts(CLI::App& verb, int64_t usual);
};

}  // namespace sparsight::cli
