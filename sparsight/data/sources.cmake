light_sources(
  data/data_info_json.cpp)
