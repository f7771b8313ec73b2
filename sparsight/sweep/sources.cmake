light_sources(
  sweep/axes.cpp
  sweep/halving.cpp
  sweep/sweep_table.cpp)
torch_sources(
  sweep/sweep.cpp)
