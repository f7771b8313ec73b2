torch_tests(
  nn/attention_scores_test.cpp
  nn/attention_test.cpp
  nn/dropout_test.cpp
  nn/init_test.cpp
  nn/norm_test.cpp
  nn/patch_embedding_test.cpp
  nn/position_embedding_test.cpp)
