# Prediction links without the trainer: a program of infer/ and the layers below it, to be included where the library is
# made. The folders above are left out by their place in SPARSIGHT_FOLDERS, whether files are compiled in groups or not.
list(FIND SPARSIGHT_FOLDERS infer _infer)
if(_infer GREATER -1)
  math(EXPR _above "${_infer} + 1")
  list(SUBLIST SPARSIGHT_FOLDERS ${_above} -1 _left_out)
  list(JOIN _left_out "|" _left_out)
  add_executable(sparsight_infer_alone ${PROJECT_SOURCE_DIR}/tests/infer/alone.cpp)
  foreach(objects sparsight sparsight_light sparsight_loops sparsight_torch_free sparsight_kernels)
    target_sources(sparsight_infer_alone PRIVATE
      "$<FILTER:$<TARGET_OBJECTS:${objects}>,EXCLUDE,\\.dir/(${_left_out})/|_above_infer_[0-9]>")
  endforeach()
  target_include_directories(sparsight_infer_alone PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(sparsight_infer_alone PRIVATE
    torch nlohmann_json::nlohmann_json Threads::Threads ${_io_libraries} ${_data_libraries})
endif()
