# Finds libtorch as the imported target `torch`: the one in SPARSIGHT_TORCH_ROOT, or the one inside a Python
# environment.
#
# TorchConfig.cmake is avoided on purpose: with a CUDA wheel it requires the whole CUDA toolkit even for a program
# without a line of CUDA, and it warns about a static library that no wheel contains. The installed package uses this
# file too.
set(SPARSIGHT_PYTHON "" CACHE FILEPATH "Python interpreter whose torch package is used")
set(SPARSIGHT_TORCH_ROOT "" CACHE PATH "Folder of libtorch, with include/ and lib/ (empty: the one of SPARSIGHT_PYTHON)")

set(_root "${SPARSIGHT_TORCH_ROOT}")
if(NOT _root AND NOT SPARSIGHT_PYTHON AND SKBUILD)  # a wheel of this repository: as its metadata says
  execute_process(COMMAND "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/python/wheel/wheel_torch.py"
    OUTPUT_VARIABLE _root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
elseif(NOT _root)
  set(_python "${SPARSIGHT_PYTHON}")
  if(NOT _python AND EXISTS "${CMAKE_SOURCE_DIR}/.venv/bin/python")
    set(_python "${CMAKE_SOURCE_DIR}/.venv/bin/python")
  endif()
  if(NOT _python)
    find_program(SPARSIGHT_PYTHON3 NAMES python3)
    set(_python "${SPARSIGHT_PYTHON3}")
  endif()
  if(_python)
    execute_process(
      COMMAND "${_python}" -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE _root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
set(_version_header "${_root}/include/torch/headeronly/version.h")
if(NOT _root OR NOT EXISTS "${_root}/lib/libtorch_cpu.so" OR NOT EXISTS "${_version_header}")
  if(NOT _find_torch)  # set by an installed package
    set(_find_torch "Run ./dev build, which installs it, or pass -DSPARSIGHT_PYTHON=<python that has torch> or \
-DSPARSIGHT_TORCH_ROOT=<folder of libtorch>.")
  endif()
  message(FATAL_ERROR "libtorch was not found (looked in \"${_root}\"). ${_find_torch}")
endif()

file(STRINGS "${_version_header}" _version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX MATCHALL "[0-9]+" _version_numbers "${_version_lines}")
list(JOIN _version_numbers "." SPARSIGHT_TORCH_VERSION)
if(SPARSIGHT_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "libtorch ${SPARSIGHT_TORCH_VERSION} in ${_root} is too old: 2.11 or newer is needed")
endif()
set(SPARSIGHT_FOUND_TORCH_ROOT "${_root}" CACHE INTERNAL "Folder of the torch that is used")
if(SPARSIGHT_CUDA AND NOT EXISTS "${_root}/lib/libtorch_cuda.so")
  message(FATAL_ERROR "libtorch in ${_root} has no CUDA: pass -DSPARSIGHT_PYTHON=<python whose torch has CUDA>")
endif()
if(NOT TARGET torch)
  message(STATUS "libtorch ${SPARSIGHT_TORCH_VERSION}: ${_root}")
  add_library(torch INTERFACE IMPORTED)
  target_include_directories(torch SYSTEM INTERFACE "${_root}/include" "${_root}/include/torch/csrc/api/include")
  # As the wheels were built: some headers need them.
  target_compile_definitions(torch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO)
  target_link_libraries(torch INTERFACE "${_root}/lib/libtorch_cpu.so" "${_root}/lib/libc10.so")
  # at::parallel_for is a plain loop without OpenMP. The OpenMP runtime is torch's own copy: two would compete for the
  # cores, so clang, which brings its own, does not get -fopenmp.
  file(GLOB _gomp "${_root}/lib/libgomp*.so*")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
    if(_gomp)  # behind -Wl, so that CMake does not warn of the compiler's own copy, which is never loaded
      list(GET _gomp 0 _gomp)
      target_link_libraries(torch INTERFACE "-Wl,${_gomp}")
    else()
      target_link_libraries(torch INTERFACE -fopenmp)
    endif()
  endif()
  if(EXISTS "${_root}/lib/libtorch_cuda.so")  # no symbol of it is referenced; it registers its kernels when loaded
    target_link_libraries(torch INTERFACE
      "-Wl,--push-state,--no-as-needed,${_root}/lib/libtorch_cuda.so,--pop-state" "${_root}/lib/libc10_cuda.so")
  endif()
endif()
