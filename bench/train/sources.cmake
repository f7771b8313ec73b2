bench_sources(
  train/loader_starvation_bench.cpp
  train/pmoe_bench.cpp)
