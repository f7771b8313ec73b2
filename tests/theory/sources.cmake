light_tests(
  theory/pmoe_bounds_test.cpp
  theory/pmoe_operations_test.cpp)
torch_tests(theory/pattern_model_test.cpp)
