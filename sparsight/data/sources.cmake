light_sources(
  data/data_info_json.cpp
  data/loader.cpp
  data/register_data.cpp
  data/sampler.cpp
  data/sets/glyph_canvas.cpp
  data/sets/glyph_painter.cpp
  data/sets/glyph_shapes.cpp
  data/sets/glyphs.cpp
  data/transforms/batch_transform.cpp
  data/transforms/color.cpp
  data/transforms/crop.cpp
  data/transforms/enhance.cpp
  data/transforms/erase.cpp
  data/transforms/flip.cpp
  data/transforms/levels.cpp
  data/transforms/normalize.cpp
  data/transforms/pipeline.cpp
  data/transforms/rand_augment.cpp
  data/transforms/register_transforms.cpp
  data/transforms/resize.cpp
  data/transforms/to_float.cpp
  data/transforms/transform_options.cpp
  data/transforms/warp.cpp)

# Glyphs have the same bits on every machine: no fused multiply-add where the target has one.
set_source_files_properties(data/sets/glyph_canvas.cpp data/sets/glyph_painter.cpp TARGET_DIRECTORY sparsight
  PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
