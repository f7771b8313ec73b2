# `cmake --install`: the program, the library, its headers and what find_package(Sparsight) reads.
include(CMakePackageConfigHelpers)
set(_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Sparsight)
set_target_properties(sparsight PROPERTIES EXPORT_NAME sparsight)
install(TARGETS sparsight EXPORT SparsightTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT SparsightTargets NAMESPACE sparsight:: DESTINATION ${_package_folder})

# The public headers are those that docs/api.md lists, and those they include. sparsight/cli/main.h is installed below.
file(READ docs/api.md _api)
string(REGEX MATCHALL "\n[|] `sparsight/[^`]*[.]h`" _headers "${_api}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/api.md)
list(TRANSFORM _headers REPLACE "^.*`([^`]*)`" "\\1")
list(REMOVE_ITEM _headers sparsight/cli/main.h)
set(_public)
while(_headers)
  list(POP_FRONT _headers _header)
  if(NOT _header IN_LIST _public)
    list(APPEND _public ${_header})
    file(STRINGS ${_header} _includes REGEX "^#include \"sparsight/")
    list(TRANSFORM _includes REPLACE "^#include \"([^\"]*)\".*" "\\1")
    list(APPEND _headers ${_includes})
  endif()
endwhile()
foreach(_header IN LISTS _public)
  cmake_path(GET _header PARENT_PATH _folder)
  install(FILES ${_header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${_folder})
endforeach()
install(FILES sparsight/moe/axes.md DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sparsight/moe)  # the headers refer to it

if(TARGET sparsight_verbs)
  install(TARGETS sparsight_verbs EXPORT SparsightTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY cli/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
configure_package_config_file(cmake/SparsightConfig.cmake.in ${PROJECT_BINARY_DIR}/SparsightConfig.cmake
  INSTALL_DESTINATION ${_package_folder} PATH_VARS SPARSIGHT_TORCH_FOLDER)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SparsightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SparsightConfig.cmake ${PROJECT_BINARY_DIR}/SparsightConfigVersion.cmake
  cmake/SparsightTorch.cmake DESTINATION ${_package_folder})
