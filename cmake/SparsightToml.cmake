# toml++ (header-only): the system's, or upstream's at a pinned commit if the distribution has none.
find_path(SPARSIGHT_TOML_INCLUDE toml++/toml.h DOC "Folder that holds toml++/toml.h")
if(NOT SPARSIGHT_TOML_INCLUDE)
  include(FetchContent)
  FetchContent_Declare(tomlplusplus
    GIT_REPOSITORY https://github.com/marzer/tomlplusplus.git
    GIT_TAG 30172438cee64926dc41fdd9c11fb3ba5b2ba9de)  # v3.4.0
  message(STATUS "toml++ is not installed (libtomlplusplus-dev): fetching it")
  FetchContent_MakeAvailable(tomlplusplus)
  set(SPARSIGHT_TOML_INCLUDE "${tomlplusplus_SOURCE_DIR}/include")
endif()
