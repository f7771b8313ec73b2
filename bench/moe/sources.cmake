bench_sources(
  main.cpp
  moe/contenders.cpp
  moe/held_table.cpp
  moe/limits.cpp
  moe/medians.cpp
  moe/moe_bench.cpp)
