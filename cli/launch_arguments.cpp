#include "cli/launch_arguments.h"

namespace sparsight::cli {

CLI::Option* LaunchArguments::declare(CLI::App& verb, const std::string& shared) {
  return verb.add_option("--processes", processes, shared)
      ->check(CLI::Range(int64_t{1}, int64_t{1024}))
      ->type_name("N");
}

void LaunchArguments::declare_restarts(CLI::App& verb, int64_t usual) {
  max_restarts = usual;
  verb.add_option("--max-restarts", max_restarts,
                  "With --processes: how often all start again from the last checkpoint after one was killed")
      ->check(CLI::Range(int64_t{0}, int64_t{1'000'000}))
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace sparsight::cli
