light_tests(
  support/count_allocations.cpp
  support/disk_faults.cpp
  support/folder_contents.cpp
  support/http_server.cpp
  support/paths.cpp
  support/program.cpp)
# Only this file knows where things lie, so that the others compile to the same objects in every checkout.
set(program "")
if(TARGET sparsight_cli)
  set(program $<TARGET_FILE:sparsight_cli>)
endif()
set_source_files_properties(support/paths.cpp PROPERTIES COMPILE_DEFINITIONS
  "SPARSIGHT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";SPARSIGHT_PROGRAM=\"${program}\";SPARSIGHT_DISK_FAULTS=\"$<TARGET_FILE:sparsight_disk_faults>\"")
add_library(sparsight_disk_faults MODULE support/disk_fault_shim.cpp)  # preloaded into programs (support/disk_faults.h)
target_link_libraries(sparsight_disk_faults PRIVATE ${CMAKE_DL_LIBS})
add_dependencies(sparsight_tests sparsight_disk_faults)
