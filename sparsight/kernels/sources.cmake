kernel_sources(
  kernels/attention/attention.cpp
  kernels/conv/conv2d.cpp
  kernels/conv/conv_depth.cpp
  kernels/conv/depthwise_conv.cpp
  kernels/conv/packed_conv.cpp
  kernels/conv/patch_linear.cpp
  kernels/conv/patch_rows.cpp
  kernels/conv/window_rows.cpp
  kernels/elementwise/batch_norm.cpp
  kernels/elementwise/adam_step.cpp
  kernels/elementwise/channel_moments.cpp
  kernels/elementwise/layer_norm.cpp
  kernels/elementwise/softmax_cross_entropy.cpp
  kernels/elementwise/softmax_rows.cpp
  kernels/elementwise/sum_of_squares.cpp
  kernels/experts/expert_mlp.cpp
  kernels/experts/expert_mlp_backward.cpp
  kernels/experts/grouped_linear.cpp
  kernels/experts/packed_experts.cpp
  kernels/experts/task_plan.cpp
  kernels/gemm/packed_linear.cpp
  kernels/gemm/row_products.cpp
  kernels/isa/first_cache.cpp
  kernels/isa/isa.cpp
  kernels/memory/arena.cpp
  kernels/pack/pack_experts.cpp
  kernels/pack/packed_copies.cpp
  kernels/pack/packed_matrix.cpp
  kernels/pack/packed_operand.cpp
  kernels/pack/stored_matrix.cpp
  kernels/random/dropout_bits.cpp
  kernels/random/fill.cpp
  kernels/routing/combine_parts.cpp
  kernels/routing/rows.cpp
  kernels/routing/sort_by_expert.cpp
  kernels/routing/top_experts.cpp
  kernels/threads/contention.cpp
  kernels/threads/follower.cpp
  kernels/threads/machine_load.cpp
  kernels/threads/task_team.cpp)

# One file per instruction-set level, each with its own flags; kernels/isa/isa.h chooses at run time. (-O3: register
# tiles are loops that must be unrolled. g++ 12 warns of uninitialised values in its own intrinsics headers.)
set(_optimise -O3)
if(SPARSIGHT_SANITIZE)
  set(_optimise -O1)  # -O3 takes ten minutes a file under the sanitizers
endif()
function(isa_sources)
  cmake_parse_arguments(PARSE_ARGV 0 isa "" "" "FLAGS")
  kernel_sources(${isa_UNPARSED_ARGUMENTS})
  set_source_files_properties(${isa_UNPARSED_ARGUMENTS} TARGET_DIRECTORY sparsight_kernels PROPERTIES COMPILE_OPTIONS
    "${_optimise};-fno-math-errno;-Wno-uninitialized;$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>;$<$<BOOL:${SPARSIGHT_NO_PREFETCH}>:-DSPARSIGHT_NO_PREFETCH>;${isa_FLAGS}")
endfunction()
isa_sources(kernels/isa/baseline.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mprefer-vector-width=512)
  kernel_sources(kernels/experts/packed_tiles.cpp kernels/isa/levels_x86_64.cpp)
  isa_sources(kernels/isa/avx2.cpp FLAGS -mavx2 -mfma)
  isa_sources(kernels/isa/avx512.cpp FLAGS ${_avx512})
  isa_sources(kernels/isa/avx512_bf16.cpp FLAGS ${_avx512} -mavx512bf16)
  isa_sources(kernels/isa/amx.cpp kernels/gemm/amx_bf16.cpp kernels/gemm/amx_fp32.cpp kernels/gemm/amx_int8.cpp
    FLAGS ${_avx512} -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # g++ schedules before it allocates registers, here but not on x86-64, and then spills the sums of the largest tiles.
  set(_neon $<$<CXX_COMPILER_ID:GNU>:-fno-schedule-insns>)
  kernel_sources(kernels/isa/levels_aarch64.cpp)
  isa_sources(kernels/isa/neon.cpp FLAGS -march=armv8-a ${_neon})
  isa_sources(kernels/isa/neon_dotprod.cpp FLAGS -march=armv8.2-a+dotprod ${_neon})
  isa_sources(kernels/isa/neon_bf16.cpp FLAGS -march=armv8.2-a+dotprod+bf16 ${_neon})
  isa_sources(kernels/isa/neon_i8mm.cpp FLAGS -march=armv8.2-a+dotprod+i8mm ${_neon})
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
  kernel_sources(kernels/isa/levels_wasm.cpp)
  isa_sources(kernels/isa/simd128.cpp)
else()
  kernel_sources(kernels/isa/levels_other.cpp)
endif()
