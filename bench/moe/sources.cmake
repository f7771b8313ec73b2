bench_sources(
  main.cpp
  moe/contenders.cpp
  moe/experts_table.cpp
  moe/packed_table.cpp
  moe/large_layer.cpp
  moe/limits.cpp
  moe/many_experts.cpp
  moe/memory_use.cpp
  moe/moe_bench.cpp
  moe/onednn.cpp
  moe/routing_share.cpp)
set_source_files_properties(moe/limits.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -O3)  # reads memory
