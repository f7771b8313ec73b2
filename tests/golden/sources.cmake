torch_tests(
  golden/auto_attack_test.cpp
  golden/convnext_golden_test.cpp
  golden/mobilenet_golden_test.cpp
  golden/resnet_golden_test.cpp
  golden/vit_golden_test.cpp
  golden/vit_variants_golden_test.cpp)
