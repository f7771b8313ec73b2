bench_sources(
  nn/dense_bench.cpp)
