torch_free_sources(dist/address.cpp dist/peers.cpp)
light_sources(
  dist/exact_parts.cpp
  dist/expert_ranks.cpp
  dist/gradient_sum.cpp
  dist/group.cpp
  dist/join.cpp
  dist/launch.cpp
  dist/probe.cpp
  dist/rank_zero.cpp
  dist/tensor_message.cpp)

# The one file that includes c10d. Its headers of gloo need those of gloo itself, which torch's wheel leaves out.
torch_sources(
  dist/gloo_group.cpp)
find_path(SPARSIGHT_GLOO_INCLUDE gloo/algorithm.h DOC "Folder that holds gloo/algorithm.h")
if(SPARSIGHT_GLOO_INCLUDE AND SPARSIGHT_TORCH)
  set_source_files_properties(dist/gloo_group.cpp TARGET_DIRECTORY sparsight PROPERTIES
    COMPILE_DEFINITIONS "SPARSIGHT_GLOO;SPARSIGHT_VERSION=\"${PROJECT_VERSION}\"" SKIP_UNITY_BUILD_INCLUSION ON)
endif()
