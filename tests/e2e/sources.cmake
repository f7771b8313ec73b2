light_tests(
  e2e/command_line_test.cpp
  e2e/config_test.cpp
  e2e/data_test.cpp
  e2e/predict_test.cpp
  e2e/run_folder_test.cpp
  e2e/train_test.cpp
  e2e/upcycle_test.cpp)
