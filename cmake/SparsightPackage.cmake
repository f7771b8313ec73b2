# `cmake --install`: the program, the library, its headers and what find_package(Sparsight) reads.
include(CMakePackageConfigHelpers)
set(_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Sparsight)
set_target_properties(sparsight PROPERTIES EXPORT_NAME sparsight)
install(TARGETS sparsight EXPORT SparsightTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT SparsightTargets NAMESPACE sparsight:: DESTINATION ${_package_folder})
install(DIRECTORY sparsight/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sparsight FILES_MATCHING PATTERN "*.h")
if(TARGET sparsight_verbs)
  install(TARGETS sparsight_verbs EXPORT SparsightTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY cli/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
configure_package_config_file(cmake/SparsightConfig.cmake.in ${PROJECT_BINARY_DIR}/SparsightConfig.cmake
  INSTALL_DESTINATION ${_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/SparsightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SparsightConfig.cmake ${PROJECT_BINARY_DIR}/SparsightConfigVersion.cmake
  cmake/SparsightTorch.cmake DESTINATION ${_package_folder})
