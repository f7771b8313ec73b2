bench_sources(
  measure/interference.cpp
  measure/own_process.cpp
  measure/ratio_interval.cpp
  measure/results_file.cpp
  measure/rounds.cpp
  measure/table.cpp
  measure/worker.cpp)
