# `cmake --install BUILD --component sparsight_infer`: the libraries, their headers, sparsight-run, and what
# find_package(sparsight_infer) and pkg-config read; nothing else. A build with torch leaves them out unless this
# component is named, since the build of the demo does not make them.
include(CMakePackageConfigHelpers)
set(_package ${CMAKE_INSTALL_LIBDIR}/cmake/sparsight_infer)
set(_in COMPONENT sparsight_infer)
if(SPARSIGHT_TORCH)
  list(APPEND _in EXCLUDE_FROM_ALL)
endif()
install(TARGETS sparsight_infer_shared EXPORT sparsight_infer_shared
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ${_in})
install(TARGETS sparsight_infer_static EXPORT sparsight_infer_static
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} ${_in})
if(TARGET sparsight_run)
  install(TARGETS sparsight_run RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} ${_in})
endif()
install(FILES include/sparsight/infer.h include/sparsight/infer.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sparsight ${_in})
foreach(_kind shared static)
  install(EXPORT sparsight_infer_${_kind} NAMESPACE sparsight_infer:: FILE sparsight_infer_${_kind}.cmake
    DESTINATION ${_package} ${_in})
endforeach()
configure_package_config_file(sparsight_inferConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/sparsight_inferConfig.cmake
  INSTALL_DESTINATION ${_package})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sparsight_inferConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sparsight_inferConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/sparsight_inferConfigVersion.cmake DESTINATION ${_package} ${_in})

# pkg-config: the folder of the .pc file tells the prefix, so that an installation can be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
  OUTPUT_VARIABLE SPARSIGHT_PREFIX_FROM_PC)
# (Not as Requires.private: pkg-config then asks for the .pc files of programs that link the shared library too.)
set(SPARSIGHT_PC_LIBS -lstdc++ -lm -pthread)
if(SPARSIGHT_DECODE_IMAGES)
  list(TRANSFORM _decoders_LIBRARIES PREPEND -l OUTPUT_VARIABLE _decoder_flags)
  list(PREPEND SPARSIGHT_PC_LIBS ${_decoder_flags} -lgif)
endif()
list(JOIN SPARSIGHT_PC_LIBS " " SPARSIGHT_PC_LIBS)
configure_file(sparsight_infer.pc.in ${CMAKE_CURRENT_BINARY_DIR}/sparsight_infer.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sparsight_infer.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${_in})

# The library inside the Python package (python/infer), which finds it by this name.
install(FILES $<TARGET_FILE:sparsight_infer_shared> DESTINATION sparsight_infer RENAME libsparsight_infer.so
  COMPONENT sparsight_infer_python EXCLUDE_FROM_ALL)
