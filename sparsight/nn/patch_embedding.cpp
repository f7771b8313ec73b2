#include "sparsight/nn/patch_embedding.h"

#include <cmath>

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
  const int64_t patch = proj_->weight.size(2), channels = images.size(1);
  const int64_t rows = images.size(2) / patch, columns = images.size(3) / patch;
  const at::Tensor patches = images.reshape({images.size(0), channels, rows, patch, columns, patch})
                                 .permute({0, 2, 4, 1, 3, 5})
                                 .reshape({images.size(0), rows * columns, channels * patch * patch});
  return at::linear(patches, proj_->weight.flatten(1), proj_->bias);
}

}  // namespace sparsight
