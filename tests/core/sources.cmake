light_tests(
  core/random_test.cpp)
