light_sources(
  io/atomic_file.cpp
  io/atomic_folder.cpp
  io/checked_json.cpp
  io/checkpoint.cpp
  io/environment.cpp
  io/file_lock.cpp
  io/metrics_log.cpp
  io/packed_folder.cpp
  io/part_files.cpp
  io/pickle.cpp
  io/run_folder.cpp
  io/safetensors.cpp
  io/safetensors_header.cpp
  io/safetensors_rows.cpp
  io/shard_index.cpp
  io/sharded_names.cpp
  io/sharded_weights.cpp
  io/temporary.cpp
  io/torch_pickle.cpp
  io/weight_names.cpp
  io/zip_archive.cpp)
torch_sources(io/weights.cpp)
set_source_files_properties(io/environment.cpp TARGET_DIRECTORY sparsight_light PROPERTIES
  COMPILE_DEFINITIONS SPARSIGHT_VERSION="${PROJECT_VERSION}")
