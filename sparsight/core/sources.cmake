light_sources(
  core/config.cpp
  core/nearest_name.cpp
  core/options.cpp
  core/random.cpp
  core/toml.cpp)
