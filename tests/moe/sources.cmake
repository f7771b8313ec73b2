torch_tests(
  moe/experts/moe_mlp_test.cpp
  moe/losses/cv_squared_test.cpp
  moe/losses/vmoe_losses_test.cpp
  moe/moe_layer_test.cpp
  moe/moe_spec_test.cpp
  moe/routers/softmax_topk_test.cpp
  moe/routing_stats_test.cpp)
