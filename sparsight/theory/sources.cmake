light_sources(
  theory/pmoe_bounds.cpp
  theory/pmoe_operations.cpp)
torch_sources(theory/pattern_model.cpp)
