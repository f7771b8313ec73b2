#include "sparsight/nn/patch_embedding.h"

#include <cmath>

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

PatchEmbeddingImpl::PatchEmbeddingImpl(const PatchEmbeddingOptions& options)
    : proj_(register_module("proj", PatchProjection(options))) {}

at::Tensor PatchEmbeddingImpl::forward(const at::Tensor& images) {
  return at::linear(image_patches(images, proj_->weight.size(2)), proj_->weight.flatten(1), proj_->bias);
}

Cost PatchEmbeddingImpl::cost() const {
  const at::Tensor& weight = proj_->weight;
  return conv_cost({weight.size(1), weight.size(0), weight.size(2), /*bias=*/true});
}

}  // namespace sparsight
