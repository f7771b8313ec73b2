# Where installed programs find libtorch: by default the copy in .venv/ of this clone is installed too, into
# <prefix>/lib/sparsight/torch, so that neither the clone nor the build folder is needed afterwards. A torch from
# elsewhere is the user's own: programs use it where it is. Its folder is private, as a libgomp in <prefix>/lib would be
# found by other programs.
#
# Programs that are installed have the same run path in the build folder (BUILD_WITH_INSTALL_RPATH): CMake ends one that it
# replaces while installing with an empty entry, for which the loader searches the current directory.
set(SPARSIGHT_TORCH_FOLDER "${SPARSIGHT_FOUND_TORCH_ROOT}")
set(_default OFF)
foreach(_folder IN ITEMS "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  cmake_path(IS_PREFIX _folder "${SPARSIGHT_FOUND_TORCH_ROOT}" NORMALIZE _inside)
  if(_inside AND NOT EXISTS "${SPARSIGHT_FOUND_TORCH_ROOT}/lib/libtorch_cuda.so")
    set(_default ON)
  endif()
endforeach()
option(SPARSIGHT_INSTALL_TORCH "Install a copy of libtorch (CPU) with the program" ${_default})
if(NOT SPARSIGHT_INSTALL_TORCH)
  set(CMAKE_INSTALL_RPATH "${SPARSIGHT_FOUND_TORCH_ROOT}/lib")
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)              # and where that torch finds CUDA
  set(SPARSIGHT_LIBEXEC_RPATH "${CMAKE_INSTALL_RPATH}")  # of programs in libexec/sparsight
  return()
endif()
if(EXISTS "${SPARSIGHT_FOUND_TORCH_ROOT}/lib/libtorch_cuda.so")
  message(FATAL_ERROR "SPARSIGHT_INSTALL_TORCH is for a torch without CUDA, got ${SPARSIGHT_FOUND_TORCH_ROOT}, which needs "
    "further packages; pass -DSPARSIGHT_INSTALL_TORCH=OFF to use it where it is")
endif()

set(SPARSIGHT_TORCH_FOLDER ${CMAKE_INSTALL_LIBDIR}/sparsight/torch)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_FULL_BINDIR}" OUTPUT_VARIABLE _lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/${_lib}/sparsight/torch/lib")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBEXECDIR}/sparsight" OUTPUT_VARIABLE _lib)
set(SPARSIGHT_LIBEXEC_RPATH "$ORIGIN/${_lib}/sparsight/torch/lib")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/${SPARSIGHT_TORCH_FOLDER}")
file(CREATE_LINK "${SPARSIGHT_FOUND_TORCH_ROOT}/lib" "${PROJECT_BINARY_DIR}/${SPARSIGHT_TORCH_FOLDER}/lib" SYMBOLIC)
file(GLOB _libraries "${SPARSIGHT_FOUND_TORCH_ROOT}/lib/libgomp*.so*")
install(FILES "${SPARSIGHT_FOUND_TORCH_ROOT}/lib/libtorch_cpu.so" "${SPARSIGHT_FOUND_TORCH_ROOT}/lib/libc10.so" ${_libraries}
  DESTINATION ${SPARSIGHT_TORCH_FOLDER}/lib COMPONENT sparsight_program)
install(DIRECTORY "${SPARSIGHT_FOUND_TORCH_ROOT}/include" DESTINATION ${SPARSIGHT_TORCH_FOLDER} MESSAGE_NEVER)
# The licences of torch and of what is linked into it.
file(GLOB _licenses "${SPARSIGHT_FOUND_TORCH_ROOT}/../torch-*.dist-info/licenses")
install(DIRECTORY ${_licenses} DESTINATION ${SPARSIGHT_TORCH_FOLDER} COMPONENT sparsight_program MESSAGE_NEVER)
