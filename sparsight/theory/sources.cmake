light_sources(theory/pmoe_bounds.cpp)
torch_sources(theory/pattern_model.cpp)
