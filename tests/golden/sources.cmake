torch_tests(
  golden/vit_golden_test.cpp)
