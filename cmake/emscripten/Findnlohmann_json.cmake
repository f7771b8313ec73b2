# nlohmann-json of the machine that builds: headers alone.
include(SparsightHostHeaders)
host_headers(nlohmann)
if(NOT TARGET nlohmann_json::nlohmann_json)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE "${SPARSIGHT_HOST_HEADERS}")
endif()
set(nlohmann_json_FOUND ON)
