# Files that know nothing of torch, linked only where a server runs: not into the front program.
add_library(sparsight_serve OBJECT)
target_include_directories(sparsight_serve PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(sparsight_serve PRIVATE nlohmann_json::nlohmann_json)
grouped_sources(sparsight_serve
  serve/access_token.cpp
  serve/answer.cpp
  serve/answer_json.cpp
  serve/base64.cpp
  serve/batch_runner.cpp
  serve/batcher.cpp
  serve/inference_protocol.cpp
  serve/metrics.cpp
  serve/page.cpp
  serve/request_reader.cpp
  serve/serve.cpp
  serve/served_model.cpp
  serve/service.cpp
  serve/visible_region.cpp)
target_compile_definitions(sparsight_serve PRIVATE SPARSIGHT_VERSION="${PROJECT_VERSION}")

# The transport. Later versions of the library have another interface of what http_server.cpp overrides.
find_package(PkgConfig REQUIRED)
pkg_check_modules(cpp_httplib IMPORTED_TARGET "cpp-httplib>=0.11.4" "cpp-httplib<0.15")
add_library(sparsight_serve_libraries INTERFACE)
if(cpp_httplib_FOUND)
  grouped_sources(sparsight_serve serve/connection_stream.cpp serve/connection_threads.cpp serve/http_server.cpp)
  target_link_libraries(sparsight_serve_libraries INTERFACE PkgConfig::cpp_httplib)
else()
  message(STATUS "cpp-httplib (libcpp-httplib-dev) is missing: `sparsight serve` is left out")
  grouped_sources(sparsight_serve serve/no_http_server.cpp)
endif()
target_link_libraries(sparsight_serve PRIVATE sparsight_serve_libraries)
set(SPARSIGHT_HAS_HTTPLIB ${cpp_httplib_FOUND} CACHE INTERNAL "")  # for cmake/SparsightConfig.cmake.in
group_files(sparsight_serve)
lightly_optimised(sparsight_serve)

# The page is built into the program: it needs no files beside it and no network.
enable_language(ASM)
file(GLOB _serve_assets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sparsight/serve/page/*)
target_sources(sparsight_serve PRIVATE serve/assets.S)
set_source_files_properties(serve/assets.S TARGET_DIRECTORY sparsight_serve PROPERTIES
  COMPILE_OPTIONS "-I${PROJECT_SOURCE_DIR}" OBJECT_DEPENDS "${_serve_assets}")

if(SPARSIGHT_TORCH)
  target_sources(sparsight PRIVATE $<TARGET_OBJECTS:sparsight_serve>)
  if(cpp_httplib_FOUND)
    target_link_libraries(sparsight INTERFACE $<LINK_ONLY:PkgConfig::cpp_httplib>)  # without its definitions in our flags
  endif()
endif()
