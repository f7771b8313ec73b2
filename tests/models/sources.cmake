torch_tests(
  models/adapt_weights_test.cpp)
