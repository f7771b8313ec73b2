// Shared by the benchmarks of the loader.
#pragma once

#include <benchmark/benchmark.h>

#include "sparsight/data/loader.h"

namespace sparsight {

// The next batch; at the end of an epoch the first one of the next.
inline Batch next_of_endless(Loader& loader) {
  if (std::optional<Batch> batch = loader.next()) return std::move(*batch);
  loader.start(loader.epoch() + 1);
  return loader.next().value();
}

// Measures the images per second of `loader`.
inline void drain(benchmark::State& state, Loader& loader, int64_t batch) {
  loader.start(0);
  for (auto _ : state) benchmark::DoNotOptimize(next_of_endless(loader));
  state.SetItemsProcessed(state.iterations() * batch);
}

}  // namespace sparsight
