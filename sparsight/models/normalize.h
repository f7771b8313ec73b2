// The first module of a model: pixels in 0..1 become what its layers take, (x - mean) / std per channel. Saved with the
// model as the buffers "normalize.mean" and "normalize.std". Letters: moe/axes.md.
#pragma once

#include <torch/nn/module.h>

#include "sparsight/data/transforms/normalize.h"

namespace sparsight {

class Normalize : public torch::nn::Module {
 public:
  // Raises UsageError unless the statistics are for 1 or `channels` channels, finite, and std is above 0.
  Normalize(const PixelStatistics& statistics, int64_t channels);

  // images: [B,C,H,W] of any floating type; computed in fp32 at least. Returns the same shape and type. Pixels are not
  // clamped: values outside 0..1 go through the same line.
  at::Tensor forward(const at::Tensor& images) const;

  PixelStatistics statistics() const;
  void set(const PixelStatistics& statistics);  // raises as the constructor

 private:
  // [C] fp64: the configuration's numbers as they are. In fp32 the factors made of them could round otherwise.
  at::Tensor mean_, std_;
};

// Whether a tensor of a model's weights belongs to its Normalize.
bool is_pixel_statistics(const std::string& name);

}  // namespace sparsight
