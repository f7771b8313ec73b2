light_tests(
  sweep/axes_test.cpp
  sweep/halving_test.cpp
  sweep/sweep_table_test.cpp)
