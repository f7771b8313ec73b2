light_tests(
  dist/gradient_sum_test.cpp
  dist/group_test.cpp)
