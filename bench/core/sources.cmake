bench_sources(
  core/random_bench.cpp)
