light_tests(
  train/gradients_test.cpp
  train/optim/factored_adam_test.cpp
  train/optim/optimizer_test.cpp
  train/schedule_test.cpp
  train/task_loss_test.cpp
  train/training_progress_test.cpp
  train/weight_average_test.cpp)
