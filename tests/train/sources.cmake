light_tests(
  train/minibatches_test.cpp
  train/named_means_test.cpp
  train/training_progress_test.cpp)
torch_tests(
  train/algorithm_test.cpp
  train/algorithm_context_test.cpp
  train/initial_weights_test.cpp)
