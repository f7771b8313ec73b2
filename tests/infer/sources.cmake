light_tests(infer/image_list_test.cpp)
torch_tests(
  infer/bare_weights_test.cpp
  infer/derived_model_test.cpp
  infer/explain_run_test.cpp
  infer/loaded_model_test.cpp
  infer/predict_files_test.cpp
  infer/predict_test.cpp)
