bench_sources(limits/peak.cpp)

# One file per instruction-set level, each with its own flags, as in sparsight/ops/sources.cmake.
function(peak_source level)
  bench_sources(limits/peak_${level}.cpp)
  set_source_files_properties(limits/peak_${level}.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-O3;-Wno-uninitialized;-Wno-maybe-uninitialized;${ARGN}")
endfunction()
peak_source(baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  peak_source(avx2 -mavx2 -mfma)
  peak_source(avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mprefer-vector-width=512)
  peak_source(avx512bf16 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mprefer-vector-width=512)
  peak_source(amx -mavx512f -mamx-tile -mamx-bf16 -mamx-int8)
endif()
