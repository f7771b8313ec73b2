light_tests(
  ${PROJECT_SOURCE_DIR}/bench/measure/interference.cpp
  ${PROJECT_SOURCE_DIR}/bench/measure/own_process.cpp
  ${PROJECT_SOURCE_DIR}/bench/measure/ratio_interval.cpp
  bench/interference_test.cpp
  bench/own_process_test.cpp
  bench/ratio_interval_test.cpp)
