light_sources(
  analysis/expert_colours.cpp
  analysis/routing_accumulator.cpp)
