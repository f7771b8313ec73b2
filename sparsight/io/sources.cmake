light_sources(
  io/atomic_file.cpp
  io/safetensors.cpp
  io/safetensors_header.cpp)
