torch_tests(
  golden/auto_attack_test.cpp
  golden/vit_golden_test.cpp)
