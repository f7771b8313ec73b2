# The wheel (pyproject.toml): scikit-build-core calls CMake with SKBUILD and the folders SKBUILD_*_DIR. The installation's
# prefix is the Python package sparsight_native. Programs find libtorch in the package torch beside it, unless
# python/sparsight_native says where else it is.
set(SPARSIGHT_TORCH_FOLDER ../torch)
set(SPARSIGHT_LIBEXEC_RPATH "$ORIGIN/../../../torch/lib")

# Manual pages and completions go where shells look for those of an environment.
set(CMAKE_INSTALL_MANDIR "${SKBUILD_DATA_DIR}/share/man")
set(CMAKE_INSTALL_DATADIR "${SKBUILD_DATA_DIR}/share")

string(REGEX MATCH "^[0-9]+[.][0-9]+" _release "${SPARSIGHT_TORCH_VERSION}")
file(WRITE "${PROJECT_BINARY_DIR}/torch_release" "${_release}\n")
install(FILES "${PROJECT_BINARY_DIR}/torch_release" DESTINATION .)

# pip does not say how many compilers to start: as many as fit into memory, 2 GB each.
cmake_host_system_information(RESULT _memory QUERY TOTAL_PHYSICAL_MEMORY)  # in MB
cmake_host_system_information(RESULT _cores QUERY NUMBER_OF_LOGICAL_CORES)
math(EXPR _jobs "${_memory} / 2000")
if(_jobs GREATER _cores)
  set(_jobs ${_cores})
elseif(_jobs LESS 1)
  set(_jobs 1)
endif()
set_property(GLOBAL PROPERTY JOB_POOLS compile=${_jobs})
set(CMAKE_JOB_POOL_COMPILE compile)
