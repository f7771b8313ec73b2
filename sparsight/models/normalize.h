// The first module of a model: normalises pixels in 0..1 to (x - mean) / std per channel. Saved with the model as the
// buffers "normalize.mean" and "normalize.std". Letters: moe/axes.md.
#pragma once

#include <torch/nn/module.h>

#include "sparsight/data/transforms/normalize.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

class Normalize : public torch::nn::Module {
 public:
  // Raises UsageError unless the statistics are for 1 or `channels` channels, finite, and std is above 0.
  Normalize(const PixelStatistics& statistics, int64_t channels);

  // images: [B,C,H,W] of any floating-point type; computed in fp32 at least. Returns the same shape and type. Values
  // outside 0..1 are not clamped.
  at::Tensor forward(const at::Tensor& images) const;

  PixelStatistics statistics() const;
  void set(const PixelStatistics& statistics);  // raises what the constructor does

 private:
  // [C] fp64, exactly as configured: from fp32 values the factors could round differently.
  at::Tensor mean_, std_;
};

// Whether the name of a model's tensor belongs to its Normalize.
bool is_pixel_statistics(const std::string& name);
// Those among a model's tensors; empty if there are none.
PixelStatistics find_pixel_statistics(const NamedTensors& tensors);

}  // namespace sparsight
