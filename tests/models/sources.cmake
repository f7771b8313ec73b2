torch_tests(
  models/adapt_weights_test.cpp
  models/patch_cnn_test.cpp
  models/shared_router_test.cpp
  models/upcycle_test.cpp
  models/vit_test.cpp
  models/wide_resnet_test.cpp)
