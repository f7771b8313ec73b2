light_tests(
  support/http_server.cpp
  support/paths.cpp
  support/program.cpp)
# Only this file knows where things lie, so that the others compile to the same objects in every checkout.
set_source_files_properties(support/paths.cpp PROPERTIES COMPILE_DEFINITIONS
  "SPARSIGHT_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";SPARSIGHT_PROGRAM=\"$<TARGET_FILE:sparsight_cli>\"")
