light_tests(
  train/training_progress_test.cpp
  train/two_layer_head_test.cpp)
torch_tests(
  train/patch_sgd_test.cpp
  train/two_layer_test.cpp)
