torch_sources(
  models/block_mlp.cpp
  models/cnn.cpp
  models/image_model.cpp
  models/mlp.cpp
  models/register_models.cpp
  models/vit.cpp
  models/vit_block.cpp)
