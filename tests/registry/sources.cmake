torch_tests(
  registry/limits_test.cpp
  registry/models_test.cpp
  registry/moe_test.cpp)
