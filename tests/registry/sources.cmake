torch_tests(
  registry/models_test.cpp
  registry/moe_test.cpp)
