# host_headers(names...): makes headers of the machine that builds, files or folders, visible to a cross compiler, in
# SPARSIGHT_HOST_HEADERS, without the others beside them, which are those of another C library.
set(SPARSIGHT_HOST_HEADERS "${CMAKE_BINARY_DIR}/host_headers")
file(MAKE_DIRECTORY "${SPARSIGHT_HOST_HEADERS}")
function(host_headers)
  foreach(name IN LISTS ARGN)
    find_path(SPARSIGHT_FOLDER_OF_${name} ${name} NO_CMAKE_FIND_ROOT_PATH PATHS /usr/include /usr/local/include REQUIRED)
    file(CREATE_LINK "${SPARSIGHT_FOLDER_OF_${name}}/${name}" "${SPARSIGHT_HOST_HEADERS}/${name}" SYMBOLIC)
  endforeach()
endfunction()
