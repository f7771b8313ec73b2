torch_tests(
  runs/attack_batch_size_test.cpp
  runs/attack_folder_test.cpp
  runs/attack_piece_test.cpp
  runs/attack_plan_test.cpp
  runs/curve_warnings_test.cpp
  runs/observed_model_test.cpp)
