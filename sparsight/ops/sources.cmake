torch_free_sources(ops/weight_type.cpp)
loop_sources(
  ops/activation.cpp
  ops/adam_step.cpp
  ops/cpu/adam_step.cpp
  ops/cpu/attention.cpp
  ops/cpu/combine_parts.cpp
  ops/cpu/contention.cpp
  ops/cpu/conv_depth.cpp
  ops/cpu/depthwise_conv.cpp
  ops/cpu/expert_mlp.cpp
  ops/cpu/expert_mlp_backward.cpp
  ops/cpu/first_cache.cpp
  ops/cpu/follower.cpp
  ops/cpu/grouped_linear.cpp
  ops/cpu/isa.cpp
  ops/cpu/kernels.cpp
  ops/cpu/layer_norm.cpp
  ops/cpu/pack_weights.cpp
  ops/cpu/packed_conv.cpp
  ops/cpu/packed_linear.cpp
  ops/cpu/packed_operand.cpp
  ops/cpu/patch_linear.cpp
  ops/cpu/patch_rows.cpp
  ops/cpu/row_products.cpp
  ops/cpu/softmax_cross_entropy.cpp
  ops/cpu/arena.cpp
  ops/cpu/task_plan.cpp
  ops/cpu/task_team.cpp
  ops/cpu/thread_waiting.cpp
  ops/dropout_mask.cpp
  ops/packed_cache.cpp
  ops/product_type.cpp
  ops/random_fill.cpp
  ops/rows.cpp
  ops/sort_by_expert.cpp
  ops/sum_of_squares.cpp
  ops/top_experts.cpp
  ops/ref/adam_step.cpp
  ops/ref/attention.cpp
  ops/ref/expert_mlp.cpp
  ops/ref/grouped_linear.cpp
  ops/ref/layer_norm.cpp
  ops/ref/rows.cpp
  ops/ref/softmax_cross_entropy.cpp
  ops/ref/sort_by_expert.cpp
  ops/ref/sum_of_squares.cpp
  ops/ref/top_experts.cpp)
torch_sources(
  ops/attention.cpp
  ops/caching_allocator.cpp
  ops/data_parallel.cpp
  ops/expert_mlp.cpp
  ops/grouped_linear.cpp
  ops/layer_norm.cpp
  ops/norm_linear.cpp
  ops/packed_experts.cpp
  ops/patch_linear.cpp
  ops/residual_add.cpp
  ops/residual_branch.cpp
  ops/softmax_cross_entropy.cpp
  ops/softmax_rows.cpp)

# One file per instruction-set level, each with its own flags; ops/cpu/isa.h chooses at run time. (-O3: register tiles
# are loops that must be unrolled. g++ 12 warns of uninitialised values in its own intrinsics headers.)
set(_optimise -O3)
if(SPARSIGHT_SANITIZE)
  set(_optimise -O1)  # -O3 takes ten minutes a file under the sanitizers
endif()
function(isa_sources file)
  loop_sources(${file})
  set_source_files_properties(${file} TARGET_DIRECTORY sparsight_loops PROPERTIES
    COMPILE_OPTIONS "${_optimise};-fno-math-errno;-Wno-uninitialized;-Wno-maybe-uninitialized;$<$<BOOL:${SPARSIGHT_NO_PREFETCH}>:-DSPARSIGHT_NO_PREFETCH>;${ARGN}")
endfunction()
isa_sources(ops/cpu/kernels_baseline.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  isa_sources(ops/cpu/kernels_avx2.cpp -mavx2 -mfma)
  isa_sources(ops/cpu/kernels_avx512.cpp -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma
    -mprefer-vector-width=512)
  isa_sources(ops/cpu/kernels_avx512_bf16.cpp -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16
    -mfma -mprefer-vector-width=512)
  foreach(file kernels_amx kernels_amx_bf16 kernels_amx_fp32)
    isa_sources(ops/cpu/${file}.cpp -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16 -mfma
      -mamx-tile -mamx-bf16 -mamx-int8 -mprefer-vector-width=512)
  endforeach()
  loop_sources(ops/cpu/packed_tiles.cpp)
endif()
