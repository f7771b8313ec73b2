bench_sources(
  data/data_bench.cpp)
