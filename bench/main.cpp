// sparsight_bench [NAME [options of that table] | google-benchmark options]: "moe" prints the tables of bench/moe/,
// "models" and "train" those of bench/models/, "conv" that of bench/nn/, "attack" that of bench/attacks/, "pmoe" times
// an epoch of the patch network, any other word runs the small benchmarks whose names match it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/attacks/attack_bench.h"
#include "bench/dist/dist_bench.h"
#include "bench/models/models_bench.h"
#include "bench/moe/moe_bench.h"
#include "bench/nn/conv_bench.h"
#include "bench/train/pmoe_bench.h"
#include "cli/usage.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"

namespace sparsight::bench {
namespace {

// Passes these options to google-benchmark, and returns those that it does not know. google-benchmark keeps the pointer
// to the program's name.
std::vector<std::string> set_options(char* program, std::vector<std::string> options) {
  std::vector<char*> pointers{program};
  for (std::string& option : options) pointers.push_back(option.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  return {pointers.begin() + 1, pointers.begin() + count};
}

// The names of the small benchmarks that match, without the sizes that they run at.
std::vector<std::string> matching(char* program, const std::string& filter) {
  set_options(program, {"--benchmark_list_tests=true", "--benchmark_filter=" + filter});
  std::ostringstream listed, ignored;
  benchmark::ConsoleReporter reporter(benchmark::ConsoleReporter::OO_None);
  reporter.SetOutputStream(&listed);
  reporter.SetErrorStream(&ignored);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::vector<std::string> names;
  std::istringstream lines(listed.str());
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find('/'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

int run_table(const std::string& name, void (*add)(CLI::App&), std::vector<std::string> arguments) {
  CLI::App app("", "sparsight_bench " + name);
  add(app);
  std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 takes
  return cli::parsed(app, [&] { app.parse(std::move(arguments)); });
}

int run(char* program, std::vector<std::string> arguments) {
  const std::map<std::string, void (*)(CLI::App&)> tables = {
      {"moe", add_moe_bench},   {"models", add_models_bench}, {"dist", add_dist_bench}, {"train", add_train_bench},
      {"conv", add_conv_bench}, {"attack", add_attack_bench}, {"pmoe", add_pmoe_bench}};
  if (!arguments.empty() && tables.contains(arguments[0]))
    return run_table(arguments[0], tables.at(arguments[0]), {arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && !arguments[0].starts_with('-')) {
    const std::string filter = arguments[0];
    if (matching(program, filter).empty()) {
      std::vector<std::string> names = matching(program, ".");
      for (const auto& [name, table] : tables) names.push_back(name);
      fail_usage("no benchmark matches \"", filter, "\"", suggestion(filter, names));
    }
    arguments[0] = "--benchmark_filter=" + filter;
    arguments.insert(arguments.begin(), "--benchmark_list_tests=false");
  }
  if (const auto unknown = set_options(program, arguments); !unknown.empty())
    fail_usage("unknown option ", unknown[0], " (known: --benchmark_..., as google-benchmark documents them)");
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace sparsight::bench

int main(int argc, char** argv) {
  return sparsight::cli::to_exit_code([&] { return sparsight::bench::run(argv[0], {argv + 1, argv + argc}); });
}
