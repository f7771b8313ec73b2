torch_sources(
  models/adapt_weights.cpp
  models/block_mlp.cpp
  models/cnn.cpp
  models/dense_layers.cpp
  models/engine_rates.cpp
  models/expert_weights.cpp
  models/conv_blocks.cpp
  models/expert_block.cpp
  models/image_model.cpp
  models/make_model.cpp
  models/map_moe.cpp
  models/mlp.cpp
  models/mnist_cnn.cpp
  models/mobilenet.cpp
  models/model_cost.cpp
  models/normalize.cpp
  models/patch_cnn.cpp
  models/register_models.cpp
  models/resnet.cpp
  models/routing_file.cpp
  models/routing_record.cpp
  models/routings.cpp
  models/shared_router.cpp
  models/upcycle.cpp
  models/vit.cpp
  models/vit_block.cpp
  models/wide_resnet.cpp)
light_sources(models/kept_engine_rates.cpp models/recorded_engines.cpp)
set_source_files_properties(models/kept_engine_rates.cpp TARGET_DIRECTORY sparsight_light PROPERTIES
  COMPILE_DEFINITIONS SPARSIGHT_VERSION="${PROJECT_VERSION}")
