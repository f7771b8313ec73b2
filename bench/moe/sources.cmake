bench_sources(
  main.cpp
  moe/contenders.cpp
  moe/limits.cpp
  moe/moe_bench.cpp)
