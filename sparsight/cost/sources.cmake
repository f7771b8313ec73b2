torch_free_sources(
  cost/convention.cpp
  cost/cost.cpp
  cost/layer_cost.cpp
  cost/part_cost.cpp
  cost/ranks_cost.cpp)
