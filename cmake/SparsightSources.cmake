# grouped_sources(target files...) adds files, and notes for unity builds which of them are compiled as one: up to 16 of
# one storey, in the order of the lists. More would make an edit cost more, and fewer a build from nothing: torch's
# headers take ten seconds a group, and a file that comes to it about one. Files with compile options of their own are
# left alone by CMake.
function(grouped_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  foreach(source IN LISTS ARGN)
    string(REGEX MATCH "^[^/]+/" storey ${source})
    string(MAKE_C_IDENTIFIER "${target}_${storey}" group)
    get_property(files GLOBAL PROPERTY ${group}_files)
    list(APPEND files ${source})
    set_property(GLOBAL PROPERTY ${group}_files ${files})
    list(LENGTH files count)
    math(EXPR number "(${count} - 1) / 16")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${number})
  endforeach()
endfunction()

# group_files(targets...): compiles as grouped_sources() noted, where SPARSIGHT_UNITY asks for it.
function(group_files)
  if(SPARSIGHT_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()
