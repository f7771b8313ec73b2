light_tests(
  io/atomic_file_test.cpp
  io/safetensors_test.cpp)
