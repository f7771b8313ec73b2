light_tests(
  dist/address_test.cpp
  dist/expert_ranks_test.cpp
  dist/gradient_sum_test.cpp
  dist/group_test.cpp
  dist/peers_test.cpp)
