torch_free_tests(
  serve/access_token_test.cpp
  serve/answer_test.cpp
  serve/base64_test.cpp
  serve/batcher_test.cpp
  serve/inference_protocol_test.cpp
  serve/metrics_test.cpp
  serve/service_test.cpp
  serve/visible_region_test.cpp)
if(NOT SPARSIGHT_BUILD_RUNTIME)  # else tests/runtime has it
  torch_free_tests(support/small_vit.cpp)
endif()
target_sources(sparsight_torch_free_tests PRIVATE $<TARGET_OBJECTS:sparsight_serve>)
target_link_libraries(sparsight_torch_free_tests PRIVATE sparsight_serve_libraries)
