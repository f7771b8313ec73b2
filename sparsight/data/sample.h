// One labelled image and a batch of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace sparsight {

struct Sample {
  at::Tensor image;  // [C,H,W] uint8
  int64_t label = 0;
  int64_t domain = 0;
  std::vector<float> attributes;
  std::string id;  // a path, or "train/123": a name by which users can find the image
};

struct Batch {
  at::Tensor images;   // [B,C,H,W] fp32, after the transforms
  at::Tensor labels;   // [B] int64
  at::Tensor targets;  // [B,K] fp32 soft targets (label smoothing, mixup, cutmix); undefined for hard labels
  at::Tensor domains;  // [B] int64
  at::Tensor indices;  // [B] int64, positions in the dataset
  std::vector<std::string> ids = {};  // [B] of the samples
};

}  // namespace sparsight
