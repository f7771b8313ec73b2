// Patch embedding: splits images into square patches and projects each to a token. Named as in timm: proj (there a
// strided convolution). With a convolutional stem of residual blocks, the patches are those of its feature map: the
// hybrid of Dosovitskiy et al. 2021, with group norm as there or with batch norm.
#pragma once

#include <memory>

#include <torch/nn/pimpl.h>

#include "sparsight/cost/layer_cost.h"
#include "sparsight/engine/patch_embedding.h"
#include "sparsight/engine/program_builder.h"
#include "sparsight/nn/conv_block.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/packed_weights.h"

namespace sparsight {

struct PatchEmbeddingOptions {
  int64_t channels = 3;            // C
  int64_t patch = 16;              // side in pixels
  int64_t width = 0;               // D
  std::vector<int64_t> stem = {};  // channels of the stem's stages, each at half the resolution; 2^stages divides patch
  int64_t stem_blocks = 1;         // residual blocks of each stage
  bool stem_batch_norm = false;    // blocks as in ResNet (resnet_block.h), else with group norm (residual_block.h)
  bool bias = true;                // of the projection
};

// The convolution's parameters. Its stride equals its kernel size, so it is a matrix product with the flattened
// patches, which is what PatchEmbeddingImpl computes: faster than a convolution on small images.
class PatchProjectionImpl : public torch::nn::Module, public Initialized {
 public:
  explicit PatchProjectionImpl(const PatchEmbeddingOptions& options);
  void initialize(const InitRandom& random) override;  // U(±1/sqrt(fan_in)), as timm

  at::Tensor weight;  // [D,C,patch,patch]
  at::Tensor bias;    // [D], or undefined
};
TORCH_MODULE(PatchProjection);

class PatchEmbeddingImpl : public torch::nn::Module {
 public:
  explicit PatchEmbeddingImpl(const PatchEmbeddingOptions& options);
  // images: [B,C,H,W], H and W multiples of the patch side. Returns [B,(H/patch)*(W/patch),D], row by row.
  // batch_statistics: of the stem's batch norms, if it has any.
  at::Tensor forward(const at::Tensor& images, bool batch_statistics = false);
  std::vector<PartCost> cost(MapSize image) const;  // per image
  // Adds the embedding to a program: [B,prefix + S,D], with the numbers of the prefix and the positions of the patches.
  engine::Value compile(engine::ProgramBuilder& builder, const engine::Shape& tokens, std::vector<float> prefix,
                        std::vector<float> positions) const;

 private:
  // [B,C',H',W'], or the images if there is no stem.
  at::Tensor stem_map(const at::Tensor& images, bool batch_statistics);

  std::vector<std::shared_ptr<ConvBlock>> stem_;
  PatchProjection proj_{nullptr};
};
TORCH_MODULE(PatchEmbedding);

}  // namespace sparsight
