light_tests(
  data/data_info_json_test.cpp
  data/loader_test.cpp
  data/sets/glyph_canvas_test.cpp
  data/sets/glyph_shapes_test.cpp
  data/sets/glyphs_test.cpp
  data/transforms/batch_transform_test.cpp
  data/transforms/pipeline_test.cpp)
