kernel_sources(
  engine/capacity.cpp
  engine/conv_chain.cpp
  engine/conv_experts.cpp
  engine/expert_columns.cpp
  engine/expert_rows.cpp
  engine/experts.cpp
  engine/gate_rule.cpp
  engine/images/planes.cpp
  engine/patch_embedding.cpp
  engine/prediction.cpp
  engine/preprocess.cpp
  engine/program.cpp
  engine/program_builder.cpp
  engine/resize_bytes.cpp
  engine/routers/expert_picks.cpp
  engine/routers/fixed.cpp
  engine/routers/logits.cpp
  engine/routers/sigmoid_bias.cpp
  engine/routers/soft.cpp
  engine/routers/top_k.cpp
  engine/routers/two_level.cpp
  engine/routers/varying.cpp
  engine/routing.cpp
  engine/step.cpp
  engine/steps/attention_pool.cpp
  engine/steps/blocks.cpp
  engine/steps/experts.cpp
  engine/steps/maps.cpp
  engine/steps/pixels.cpp
  engine/steps/route.cpp
  engine/steps/rows.cpp
  engine/transformer_block.cpp)

# Decoding of files takes image libraries, which the Python package does without.
if(SPARSIGHT_DECODE_IMAGES)
  kernel_sources(
    engine/images/bmp.cpp
    engine/images/decode.cpp
    engine/images/exif.cpp
    engine/images/gif.cpp
    engine/images/jpeg.cpp
    engine/images/png.cpp
    engine/images/tiff.cpp
    engine/images/webp.cpp)
endif()

# Without trapping, loops with a choice between two numbers run in vectors.
set_source_files_properties(engine/resize_bytes.cpp TARGET_DIRECTORY sparsight_kernels
  PROPERTIES COMPILE_OPTIONS -fno-trapping-math)

# What reads and writes files runs once: it is made small, for libsparsight_infer.
set(_file_sources
  engine/file/byte_source.cpp
  engine/file/field_reader.cpp
  engine/file/field_writer.cpp
  engine/file/fields.cpp
  engine/file/frozen_file.cpp
  engine/file/frozen_header.cpp
  engine/file/kinds.cpp
  engine/file/mapped_file.cpp
  engine/file/mlp_tensors.cpp
  engine/file/pack_cache.cpp
  engine/file/packing_checksum.cpp
  engine/file/whole_file.cpp
  engine/onnx/onnx_capacity.cpp
  engine/onnx/onnx_export.cpp
  engine/onnx/onnx_graph.cpp
  engine/onnx/onnx_layers.cpp
  engine/onnx/onnx_routing.cpp)
kernel_sources(${_file_sources})
set_source_files_properties(${_file_sources} TARGET_DIRECTORY sparsight_kernels PROPERTIES COMPILE_OPTIONS -Os)
