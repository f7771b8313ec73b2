// The interface of every model: images in, ModelOutput out.
#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "sparsight/core/registry.h"
#include "sparsight/cost/convention.h"
#include "sparsight/cost/part_cost.h"
#include "sparsight/models/model_input.h"
#include "sparsight/models/model_output.h"
#include "sparsight/moe/moe_spec.h"

namespace sparsight {

// What a model must know of the data it is made for.
struct ImageShape {
  int64_t channels = 3;
  int64_t height = 32;
  int64_t width = 32;
  int64_t classes = 10;
};

// What a model is made from, beside its own options.
struct ModelContext {
  ImageShape image;
  MoeSpec moe;
};

// A model just constructed holds no useful values: call initialize(model, seed) of nn/init.h, or load weights.
class ImageModel : public torch::nn::Module {
 public:
  // images: [B,C,H,W] fp32, normalised as in training. What the pass does is input.mode; torch's train() and eval()
  // mean nothing. Parameter names follow timm where timm has the model. Raises Error for what does not fit the images.
  ModelOutput forward(const ModelInput& input);

  // What an image costs, part by part; each part is named as its parameters begin. By default the parameters are those
  // registered, each matrix among them is applied once to an image, and the cost says that it is assumed: a lower bound
  // for models that apply them to tokens or places.
  virtual std::vector<PartCost> cost(const CostOptions& options) const;

 protected:
  virtual ModelOutput run(const ModelInput& input) = 0;
};

// Raises Error unless images are [B,C,H,W] of the shape the model was made for.
void check_images(const at::Tensor& images, const ImageShape& shape);
// The head's result in fp32 (fp64 for fp64), as losses want it under autocast.
at::Tensor as_logits(const at::Tensor& head);

// For models whose logits of two classes are (0, f), so that their cross-entropy is the logistic loss of f. The head
// then gives f alone, for more classes a number for each.
int64_t head_outputs(int64_t classes);
at::Tensor two_class_logits(const at::Tensor& f);  // [B,1] -> [B,2]

}  // namespace sparsight
