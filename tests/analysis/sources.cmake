light_tests(
  analysis/canvas_test.cpp
  analysis/heat_map_test.cpp
  analysis/patch_tint_test.cpp
  analysis/routing_accumulator_test.cpp)
torch_tests(
  analysis/explain_test.cpp)
