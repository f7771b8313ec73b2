bench_sources(
  ops/attention_bench.cpp)
