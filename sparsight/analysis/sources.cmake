light_sources(
  analysis/canvas.cpp
  analysis/expert_colours.cpp
  analysis/heat_map.cpp
  analysis/patch_tint.cpp
  analysis/routing_accumulator.cpp)
torch_sources(
  analysis/explain.cpp)
