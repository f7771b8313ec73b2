// The interface of every model: images in, ModelOutput out.
#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "sparsight/core/random.h"
#include "sparsight/core/registry.h"
#include "sparsight/models/model_output.h"

namespace sparsight {

// What a model must know of the data it is made for.
struct ImageShape {
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;
  int64_t classes = 10;
};

class ImageModel : public torch::nn::Module {
 public:
  // images: [B,C,H,W] fp32, normalised as in training. `random` feeds dropout, drop path and router noise, which are
  // active while is_training(). Parameter names follow timm where timm has the model.
  virtual ModelOutput forward(const at::Tensor& images, const StepRandom& random) = 0;
};

}  // namespace sparsight
