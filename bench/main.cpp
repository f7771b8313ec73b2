// sparsight_bench [NAME | google-benchmark options]: "moe" prints the tables of bench/moe/, any other word runs the
// small benchmarks whose name matches it.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bench/moe/moe_bench.h"
#include "sparsight/core/error.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (argc > 1 && arguments[1] == "moe") try {
      return sparsight::bench::run_moe_bench({arguments.begin() + 2, arguments.end()});
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
