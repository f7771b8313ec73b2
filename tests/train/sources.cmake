light_tests(
  train/optim/optimizer_test.cpp
  train/schedule_test.cpp)
