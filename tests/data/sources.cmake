light_tests(
  data/data_info_json_test.cpp)
