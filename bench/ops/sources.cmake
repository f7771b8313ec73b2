bench_sources(
  ops/attention_bench.cpp
  ops/softmax_cross_entropy_bench.cpp
  ops/softmax_rows_bench.cpp)
