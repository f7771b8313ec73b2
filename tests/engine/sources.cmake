torch_free_tests(
  engine/engine_test.cpp
  engine/frozen_file_test.cpp
  engine/onnx_test.cpp
  engine/pack_cache_test.cpp
  engine/preprocess_test.cpp
  engine/program_forms.cpp
  engine/program_test.cpp)
