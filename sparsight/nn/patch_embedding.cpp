#include "sparsight/nn/patch_embedding.h"

#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/nn/linear.h"
#include "sparsight/nn/patches.h"

namespace sparsight {

PatchProjectionImpl::PatchProjectionImpl(const PatchEmbeddingOptions& options)
    : weight(register_parameter("weight",
                                parameter_zeros({options.width, options.channels, options.patch, options.patch}))),
      bias(register_parameter("bias", parameter_zeros({options.width}))) {}

void PatchProjectionImpl::initialize(const InitRandom& random) {
  const double bound = 1 / std::sqrt(static_cast<double>(weight[0].numel()));
  init_uniform(weight, bound, random.stream("weight"));
  init_uniform(bias, bound, random.stream("bias"));
}

PatchEmbeddingImpl::PatchEmbeddingImpl(const PatchEmbeddingOptions& options) {
  PatchEmbeddingOptions projection = options;
  std::shared_ptr<torch::nn::Module> stem;
  for (const int64_t channels : options.stem) {
    if (!stem) stem = register_module("stem", std::make_shared<torch::nn::Module>());
    const ResidualBlockOptions block{projection.channels, channels, 2};
    stem_.push_back(stem->register_module(cat(stem_.size()), ResidualBlock(block)));
    projection.channels = channels;
    projection.patch /= 2;
  }
  proj_ = register_module("proj", PatchProjection(projection));
}

void PatchEmbeddingImpl::freeze(WeightType type) {
  for (ResidualBlock& block : stem_) block->freeze(type);
  const at::Tensor &weight = proj_->weight, &bias = proj_->bias;
  std::vector<FrozenConvStep> steps(1);
  FrozenConvStep& step = steps[0];
  step.conv = cpu::PackedConv(floats_of(weight).data(), floats_of(bias).data(), weight.size(1), weight.size(0),
                              weight.size(2), type);
  step.kernel = step.stride = weight.size(2);
  step.same = true;  // of multiples of the patch side: no padding
  copy_.pack(std::move(steps), {weight, bias});
}

at::Tensor PatchEmbeddingImpl::forward(const at::Tensor& images) {
  at::Tensor map = images;
  for (ResidualBlock& block : stem_) map = block->forward(map);
  const int64_t patch = proj_->weight.size(2);
  const bool whole = map.size(2) % patch == 0 && map.size(3) % patch == 0;
  if (whole && copy_.usable(map)) return copy_.run(map).permute({0, 2, 3, 1}).flatten(1, 2);
  return fully_connected(image_patches(map, patch), proj_->weight.flatten(1), proj_->bias);
}

std::vector<PartCost> PatchEmbeddingImpl::cost(MapSize image) const {
  std::vector<PartCost> parts;
  for (size_t i = 0; i < stem_.size(); ++i) append(parts, stem_[i]->cost(cat("patch_embed.stem.", i), image));
  const at::Tensor& weight = proj_->weight;
  const int64_t patch = weight.size(2);
  const Cost per_patch = conv_cost({weight.size(1), weight.size(0), patch, /*bias=*/true});
  parts.push_back({"patch_embed", on_units(per_patch, image.height / patch * (image.width / patch))});
  return parts;
}

}  // namespace sparsight
