bench_sources(
  measure/interference.cpp
  measure/ratio_interval.cpp
  measure/rounds.cpp
  measure/table.cpp)
