# grouped_sources(target files...) adds files, and assigns them to groups of 16 for unity builds, in the order of the
# lists. The global property grouped_part, where it is set, begins new groups and is in their names. Larger groups would
# make edits slower, and smaller ones clean builds: torch's headers take ten seconds per group, and each file about one
# more. So names in unnamed namespaces must be unique in a whole target. CMake leaves files with compile options of their
# own out of the groups.
function(grouped_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  get_property(part GLOBAL PROPERTY grouped_part)
  set(groups ${target}${part})
  foreach(source IN LISTS ARGN)
    get_property(count GLOBAL PROPERTY ${groups}_grouped)
    if(NOT count)
      set(count 0)
    endif()
    math(EXPR group "${count} / 16")
    math(EXPR count "${count} + 1")
    set_property(GLOBAL PROPERTY ${groups}_grouped ${count})
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${groups}_${group})
  endforeach()
endfunction()

# group_files(targets...): compiles the groups of grouped_sources() as one file each if SPARSIGHT_UNITY is on.
function(group_files)
  if(SPARSIGHT_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()
