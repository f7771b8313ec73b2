light_tests(
  io/atomic_file_test.cpp
  io/checkpoint_test.cpp
  io/metrics_log_test.cpp
  io/run_folder_test.cpp
  io/safetensors_test.cpp
  io/torch_pickle_test.cpp)
