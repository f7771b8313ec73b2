light_tests(dg/protocol_random_test.cpp)
torch_tests(
  dg/algorithms/every_domain_algorithm_test.cpp
  dg/algorithms/hand_steps_test.cpp
  dg/algorithms/penalties_test.cpp
  dg/algorithms/training_rules_test.cpp
  dg/twice_differentiable_test.cpp)
