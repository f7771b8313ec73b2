light_tests(
  eval/compare_records_test.cpp
  eval/records_test.cpp
  eval/statistics_test.cpp
  eval/task_loss_test.cpp)
torch_tests(
  eval/guidance_test.cpp
  eval/precision_at_one_test.cpp)
