light_sources(
  analysis/routing_accumulator.cpp)
