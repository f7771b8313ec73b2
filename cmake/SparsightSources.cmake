# grouped_sources(target files...) adds files, and notes for unity builds which of them are compiled as one: 16 at a
# time, in the order of the lists. More would make an edit cost more, and fewer a build from nothing: torch's headers
# take ten seconds a group, and a file that comes to it about one. So the files of a target need different names in their
# unnamed namespaces, whatever their folders. Files with compile options of their own are left alone by CMake.
function(grouped_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  foreach(source IN LISTS ARGN)
    get_property(count GLOBAL PROPERTY ${target}_grouped)
    if(NOT count)
      set(count 0)
    endif()
    math(EXPR group "${count} / 16")
    math(EXPR count "${count} + 1")
    set_property(GLOBAL PROPERTY ${target}_grouped ${count})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${group})
  endforeach()
endfunction()

# group_files(targets...): compiles as grouped_sources() noted, where SPARSIGHT_UNITY asks for it.
function(group_files)
  if(SPARSIGHT_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()
