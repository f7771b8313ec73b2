// sparsight_bench [NAME | google-benchmark options]: "moe" prints the tables of bench/moe/, "pmoe" the time of an epoch
// of the patch network, any other word runs the small benchmarks whose name matches it.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/moe/moe_bench.h"
#include "bench/train/pmoe_bench.h"
#include "sparsight/core/error.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  const std::map<std::string, int (*)(const std::vector<std::string>&)> tables = {
      {"moe", sparsight::bench::run_moe_bench}, {"pmoe", sparsight::bench::run_pmoe_bench}};
  if (argc > 1 && tables.contains(arguments[1])) try {
      return tables.at(arguments[1])({arguments.begin() + 2, arguments.end()});
    } catch (const sparsight::Error& error) {
      std::fprintf(stderr, "error: %s\n", error.what());
      return error.exit_code();
    }
  if (argc > 1 && arguments[1][0] != '-') arguments[1] = "--benchmark_filter=" + arguments[1];
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
