kernel_sources(
  engine/conv_chain.cpp
  engine/patch_embedding.cpp
  engine/transformer_block.cpp)
