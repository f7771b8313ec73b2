torch_free_tests(
  kernels/attention/attention_test.cpp
  kernels/conv/conv2d_test.cpp
  kernels/conv/conv_depth_test.cpp
  kernels/conv/patch_linear_test.cpp
  kernels/elementwise/rows_of_numbers_test.cpp
  kernels/experts/experts_test.cpp
  kernels/experts/task_plan_test.cpp
  kernels/gemm/gemm_bf16_test.cpp
  kernels/gemm/gemm_int8_test.cpp
  kernels/gemm/gemm_test.cpp
  kernels/every_kernel_test.cpp
  kernels/kernels_test.cpp
  kernels/memory/arena_test.cpp
  kernels/random/random_kernels_test.cpp
  kernels/routing/routing_kernels_test.cpp
  kernels/threads/contention_test.cpp
  kernels/threads/follower_test.cpp
  kernels/threads/task_team_test.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  torch_free_tests(kernels/isa/levels_aarch64_test.cpp)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL "wasm32")
  torch_free_tests(kernels/isa/levels_wasm_test.cpp)
endif()
