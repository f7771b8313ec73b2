// Random numbers per second from a stream.
#include <benchmark/benchmark.h>

#include "sparsight/core/random.h"

namespace sparsight {
namespace {

void random_uniform(benchmark::State& state) {
  RandomStream stream(1, "bench");
  for (auto _ : state) benchmark::DoNotOptimize(stream.uniform());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(random_uniform);

void random_normal(benchmark::State& state) {
  RandomStream stream(1, "bench");
  for (auto _ : state) benchmark::DoNotOptimize(stream.normal());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(random_normal);

}  // namespace
}  // namespace sparsight
