torch_tests(
  ops/grouped_linear_test.cpp
  ops/random_fill_test.cpp
  ops/rows_test.cpp
  ops/sort_by_expert_test.cpp
  ops/top_experts_test.cpp)
