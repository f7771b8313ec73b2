// Which model a file of weights is of, as the names and shapes of its tensors tell.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/data/transforms/normalize.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

struct DerivedModel {
  Json settings;           // of [model]; without `heads` where the shapes leave them open
  Json eval_transforms;    // of images of any size, as its authors usually evaluate such a model
  int64_t channels = 3;    // of its images
  int64_t side = 0;        // of its images, in pixels; of convolutional networks the usual one
  PixelStatistics pixels;  // those that most files of its kind were trained with
};

// Derives vision transformers and ConvNeXt (timm's names), ResNets and MobileNetV2 (torchvision's). tensors: of
// read_weights(), not empty. Raises UsageError, which names `path`, for other models, and for parts of one that `vit`
// does not have.
DerivedModel derive_model(const NamedTensors& tensors, const std::string& path);

}  // namespace sparsight
