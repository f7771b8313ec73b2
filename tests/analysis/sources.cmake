light_tests(
  analysis/routing_accumulator_test.cpp)
