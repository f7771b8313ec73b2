torch_free_tests(
  cost/convention_test.cpp
  cost/cost_test.cpp
  cost/layer_cost_test.cpp
  cost/ranks_cost_test.cpp)
