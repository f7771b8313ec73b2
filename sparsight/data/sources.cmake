light_sources(
  data/data_info_json.cpp
  data/register_data.cpp
  data/sets/glyph_canvas.cpp
  data/sets/glyph_painter.cpp
  data/sets/glyph_shapes.cpp
  data/sets/glyphs.cpp)

# Glyphs have the same bits on every machine: no fused multiply-add where the target has one.
set_source_files_properties(data/sets/glyph_canvas.cpp data/sets/glyph_painter.cpp TARGET_DIRECTORY sparsight
  PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
