light_tests(
  optim/factored_adam_test.cpp
  optim/gradients_test.cpp
  optim/optimizer_test.cpp
  optim/parameter_groups_test.cpp
  optim/recipe_schedule_test.cpp
  optim/schedule_test.cpp
  optim/weight_average_test.cpp)
