bench_sources(
  models/models_bench.cpp
  models/our_model.cpp)
