bench_sources(
  attacks/attack_bench.cpp
  attacks/attacked_vit.cpp)
