bench_sources(
  optim/adam_bench.cpp)
