# Warnings, sanitizers and the compiler cache, for every target of this project.
find_program(SPARSIGHT_CCACHE ccache)
if(SPARSIGHT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Let ccache see through the precompiled header, and share its entries between folders.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env"
    "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime"
    "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "CCACHE_NOHASHDIR=1" "${SPARSIGHT_CCACHE}")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # ccache needs -fpch-preprocess. In g++ 12 -Wrestrict gives false positives for std::string.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess> $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  if(SPARSIGHT_UNITY)  # a file of a group counts as a header
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endif()

# __FILE__ is relative to the repository: the same objects in every clone, for ccache too, and no paths of the machine in
# what is shipped.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# Multiply-adds are fused where the code says so, on every architecture: kernels at levels that give the same bits,
# generated images, and levels of pixels that are Pillow's to the bit.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>)
if(SPARSIGHT_SANITIZE)
  add_compile_options(-fsanitize=${SPARSIGHT_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SPARSIGHT_SANITIZE})
  if(SPARSIGHT_SANITIZE MATCHES "undefined")
    # They take a third of the compile time, and the address sanitizer finds what null and stray pointers do.
    add_compile_options(-fno-sanitize=null,alignment,vptr,object-size,pointer-overflow)
  endif()
endif()

# program_reuses_precompiled_header(target of): the program is compiled under the precompiled header of a library, which
# serves only files compiled with its flags: -fPIC, not the -fPIE of programs.
function(program_reuses_precompiled_header target of)
  target_precompile_headers(${target} REUSE_FROM ${of})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # without it, each group of files takes half a minute more
    target_compile_options(${target} PRIVATE -Werror=invalid-pch)
  endif()
endfunction()

# lightly_optimised(targets...): -O1 in release builds, which compiles in two thirds of the time. For tests, and for
# code that only calls torch and the kernels. (With -O1 g++ 12 warns of uninitialised members in exception clean-up.)
function(lightly_optimised)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>
      $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
  endforeach()
endfunction()
