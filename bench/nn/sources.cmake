bench_sources(
  nn/conv_bench.cpp
  nn/dense_bench.cpp)
