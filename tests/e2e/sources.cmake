light_tests(
  e2e/command_line_test.cpp
  e2e/config_test.cpp
  e2e/train_test.cpp)
