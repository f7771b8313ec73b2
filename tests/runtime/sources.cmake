if(NOT SPARSIGHT_BUILD_RUNTIME)
  return()
endif()
torch_free_tests(
  runtime/infer_hpp_test.cpp
  runtime/infer_misuse_test.cpp
  runtime/infer_test.cpp
  support/count_allocations.cpp
  support/small_vit.cpp)
# Its operators new and delete must not be inlined into the tests.
set_source_files_properties(support/count_allocations.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
# The header as C programs see it.
target_sources(sparsight_torch_free_tests PRIVATE runtime/c_interface.c $<TARGET_OBJECTS:sparsight_infer_objects>)
set_source_files_properties(runtime/c_interface.c PROPERTIES
  COMPILE_OPTIONS "-std=c11;-pedantic-errors;-Wall;-Wextra;-Werror" SKIP_UNITY_BUILD_INCLUSION ON)
target_include_directories(sparsight_torch_free_tests PRIVATE ${PROJECT_SOURCE_DIR}/runtime/include)

if(EMSCRIPTEN)
  return()
endif()
# What the script tests of runtime/ and ./dev bench mobile run on.
find_package(CLI11 REQUIRED)
add_executable(sparsight_write_small_vit runtime/write_small_vit.cpp support/small_vit.cpp
  $<TARGET_OBJECTS:sparsight_torch_free> $<TARGET_OBJECTS:sparsight_kernels>)
target_include_directories(sparsight_write_small_vit PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(sparsight_write_small_vit PRIVATE Threads::Threads sparsight_image_libraries CLI11::CLI11)
lightly_optimised(sparsight_write_small_vit)
