// What the benchmarks of the loader share.
#pragma once

#include <benchmark/benchmark.h>

#include "sparsight/data/loader.h"

namespace sparsight {

// The next batch, of the next epoch where one is at its end.
inline Batch next_of_endless(Loader& loader) {
  if (std::optional<Batch> batch = loader.next()) return std::move(*batch);
  loader.start(loader.epoch() + 1);
  return loader.next().value();
}

// Measures how many images a second `loader` gives.
inline void drain(benchmark::State& state, Loader& loader, int64_t batch) {
  loader.start(0);
  for (auto _ : state) benchmark::DoNotOptimize(next_of_endless(loader));
  state.SetItemsProcessed(state.iterations() * batch);
}

}  // namespace sparsight
