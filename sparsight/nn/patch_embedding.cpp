#include "sparsight/nn/patch_embedding.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/engine/steps/blocks.h"
#include "sparsight/engine/steps/maps.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/patches.h"
#include "sparsight/nn/residual_block.h"
#include "sparsight/nn/resnet_block.h"
#include "sparsight/ops/patch_linear.h"

namespace sparsight {

PatchProjectionImpl::PatchProjectionImpl(const PatchEmbeddingOptions& options)
    : weight(register_parameter("weight",
                                parameter_zeros({options.width, options.channels, options.patch, options.patch}))) {
  if (options.bias) bias = register_parameter("bias", parameter_zeros({options.width}));
}

void PatchProjectionImpl::initialize(const InitRandom& random) {
  const double bound = 1 / std::sqrt(static_cast<double>(weight[0].numel()));
  init_uniform(weight, bound, random.stream("weight"));
  if (bias.defined()) init_uniform(bias, bound, random.stream("bias"));
}

namespace {

std::shared_ptr<ConvBlock> stem_block(int64_t in, int64_t out, int64_t stride, bool batch_norm) {
  if (batch_norm) return std::make_shared<ResnetBlock>(ResnetBlockOptions{.in = in, .width = out, .stride = stride});
  return std::make_shared<ResidualBlockImpl>(ResidualBlockOptions{in, out, stride});
}

}  // namespace

PatchEmbeddingImpl::PatchEmbeddingImpl(const PatchEmbeddingOptions& options) {
  PatchEmbeddingOptions projection = options;
  std::shared_ptr<torch::nn::Module> stem;
  for (const int64_t channels : options.stem) {
    if (!stem) stem = register_module("stem", std::make_shared<torch::nn::Module>());
    for (int64_t i = 0; i < options.stem_blocks; ++i) {
      const auto block = stem_block(projection.channels, channels, i == 0 ? 2 : 1, options.stem_batch_norm);
      stem_.push_back(stem->register_module(cat(stem_.size()), block));
      projection.channels = channels;
    }
    projection.patch /= 2;
  }
  proj_ = register_module("proj", PatchProjection(projection));
}

engine::Value PatchEmbeddingImpl::compile(engine::ProgramBuilder& builder, const engine::Shape& tokens,
                                          std::vector<float> prefix, std::vector<float> positions) const {
  engine::Value map = stem_.empty() ? builder.planes() : builder.map();
  const int64_t planes = stem_.empty() ? map.shape.height : 0;
  for (const auto& block : stem_) map = engine::add_convs(builder, map, block->conv_steps(builder.type()));
  return builder.add<engine::EmbedStep>(
      map, builder.new_value(tokens), planes,
      engine::PatchEmbedding(packed_linear(proj_->weight, proj_->bias, builder.type()), proj_->weight.size(2)),
      std::move(prefix), std::move(positions));
}

at::Tensor PatchEmbeddingImpl::stem_map(const at::Tensor& images, bool batch_statistics) {
  at::Tensor map = images;
  for (const auto& block : stem_) map = block->forward(map, batch_statistics);
  return map;
}

at::Tensor PatchEmbeddingImpl::forward(const at::Tensor& images, bool batch_statistics) {
  const at::Tensor& weight = proj_->weight;
  const at::Tensor map = stem_map(images, batch_statistics);
  if (suits_kernels(map))
    return patch_linear(map, weight,
                        proj_->bias.defined() ? proj_->bias : at::zeros({weight.size(0)}, weight.options()));
  return fully_connected(image_patches(map, weight.size(2)), weight.flatten(1), proj_->bias);
}

std::vector<PartCost> PatchEmbeddingImpl::cost(MapSize image) const {
  std::vector<PartCost> parts;
  for (size_t i = 0; i < stem_.size(); ++i) append(parts, stem_[i]->cost(cat("patch_embed.stem.", i), image));
  const at::Tensor& weight = proj_->weight;
  const int64_t patch = weight.size(2);
  const Cost per_patch = conv_cost({weight.size(1), weight.size(0), patch, proj_->bias.defined()});
  parts.push_back({"patch_embed", on_units(per_patch, image.height / patch * (image.width / patch))});
  return parts;
}

}  // namespace sparsight
