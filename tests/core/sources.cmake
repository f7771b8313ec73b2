light_tests(
  core/interrupt_test.cpp
  core/progress_test.cpp
  core/random_test.cpp)
