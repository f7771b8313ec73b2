torch_tests(
  registry/eval_choices_test.cpp
  registry/eval_noise_test.cpp
  registry/limits_test.cpp
  registry/models_test.cpp
  registry/moe_test.cpp)
