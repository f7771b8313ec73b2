// Every kernel of kernels.inc at every level of this CPU, by its example: ./dev bench loops --benchmark_filter=kernels
#include <benchmark/benchmark.h>

#include "sparsight/kernels/examples.h"
#include "sparsight/kernels/isa/isa.h"

namespace sparsight::cpu {
namespace {

const bool registered = [] {
  for (const std::string& level : isa_names())
    for (const KernelExample& example : kernel_examples())
      benchmark::RegisterBenchmark(
          ("kernels/" + example.name + "/" + level).c_str(), [level, example](benchmark::State& state) {
            set_isa(level);
            for (auto _ : state) example.run();
            set_isa("");
            state.counters["operations"] =
                benchmark::Counter(example.operations, benchmark::Counter::kIsIterationInvariantRate);
          });
  return true;
}();

}  // namespace
}  // namespace sparsight::cpu
