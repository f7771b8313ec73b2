light_tests(
  support/program.cpp)
