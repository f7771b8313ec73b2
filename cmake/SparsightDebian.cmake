# The Debian package: `cpack --config BUILD/CPackConfig.cmake`, or ./dev package. It has the program (the component
# sparsight_program) and not the C++ library. As Debian has no current torch, libtorch is in it, where only the program
# looks for it: SparsightInstallTorch.cmake.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sparsight)
set(CPACK_PACKAGE_CONTACT "The Sparsight authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL sparsight_program)
set(CPACK_COMPONENT_SPARSIGHT_PROGRAM_DESCRIPTION
  "One program that trains, evaluates, attacks, explains and exports image models\nwith layers of experts. It has a private copy of libtorch and needs no Python.")
set(CPACK_DEBIAN_SPARSIGHT_PROGRAM_PACKAGE_NAME sparsight)
set(CPACK_DEBIAN_SPARSIGHT_PROGRAM_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4 | libcurl4t64")  # loaded when something is downloaded
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
find_program(SPARSIGHT_SHLIBDEPS dpkg-shlibdeps)
if(SPARSIGHT_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${SPARSIGHT_FOUND_TORCH_ROOT}/lib")
else()
  message(STATUS "dpkg-shlibdeps (dpkg-dev) is missing: a Debian package will lack its dependencies")
endif()
install(FILES third_party/vega/LICENSES DESTINATION ${CMAKE_INSTALL_DOCDIR}/vega COMPONENT sparsight_program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT sparsight_program)
include(CPack)
