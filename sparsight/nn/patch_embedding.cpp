#include "sparsight/nn/patch_embedding.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/patches.h"
#include "sparsight/nn/residual_block.h"
#include "sparsight/nn/resnet_block.h"
#include "sparsight/ops/cpu/patch_linear.h"
#include "sparsight/ops/patch_linear.h"
#include "sparsight/ops/torch_threads.h"

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

PatchEmbeddingImpl::PatchEmbeddingImpl(const PatchEmbeddingOptions& options)
    : side_(options.patch), has_batch_norm_(options.stem_batch_norm && !options.stem.empty()) {
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

void PatchEmbeddingImpl::pack(WeightType type) {
  for (const auto& block : stem_) block->pack(type);
  const at::Tensor &weight = proj_->weight, &bias = proj_->bias;
  packed_ = std::make_shared<const engine::PatchEmbedding>(packed_linear(weight, bias, type), weight.size(2));
  packed_sources_ = CopiedTensors(tensors_of(*proj_));
}

bool PatchEmbeddingImpl::uses_packed(const at::Tensor& images, bool batch_statistics) const {
  return packed_ && !(has_batch_norm_ && batch_statistics) && images.size(2) % side_ == 0 &&
         images.size(3) % side_ == 0 &&
         packed_sources_.is_usable_for(images, packed_->type(), EngineUse::linear_inference);
}

at::Tensor PatchEmbeddingImpl::stem_map(const at::Tensor& images, bool batch_statistics) {
  at::Tensor map = images;
  for (const auto& block : stem_) map = block->forward(map, batch_statistics);
  return map;
}

void PatchEmbeddingImpl::forward_packed(const at::Tensor& images, const at::Tensor& positions,
                                        const at::Tensor& tokens) {
  const at::Tensor map = stem_map(images, /*batch_statistics=*/false);
  packed_->run(cpu::torch_threads(), cpu::strided_images(map),
               positions.defined() ? positions.const_data_ptr<float>() : nullptr,
               {tokens.data_ptr<float>(), tokens.stride(0)});
}

at::Tensor PatchEmbeddingImpl::forward(const at::Tensor& images, bool batch_statistics) {
  const at::Tensor& weight = proj_->weight;
  if (uses_packed(images, batch_statistics)) {
    const int64_t patches = images.size(2) / side_ * (images.size(3) / side_);
    at::Tensor tokens = at::empty({images.size(0), patches, weight.size(0)}, images.options());
    forward_packed(images, {}, tokens);
    return tokens;
  }
  const at::Tensor map = stem_map(images, batch_statistics);
  if (has_linear_kernels(map))
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
