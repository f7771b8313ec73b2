torch_tests(
  registry/eval_choices_test.cpp
  registry/eval_noise_test.cpp
  registry/expert_limits_test.cpp
  registry/models_test.cpp
  registry/moe_test.cpp
  registry/router_limits_test.cpp)
light_tests(registry/figures_test.cpp)
