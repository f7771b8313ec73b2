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
  std::string id;                    // a path, or "train/123": a name by which users can find the image
  std::vector<int64_t> labels = {};  // of multi-label data: all classes of the image, ascending; `label` is the first
};

struct Batch {
  at::Tensor images;   // [B,C,H,W] fp32, after the transforms
  at::Tensor labels;   // [B] int64
  at::Tensor targets;  // [B,K] fp32 soft targets (label smoothing, mixup, cutmix); undefined for hard labels
  at::Tensor domains;  // [B] int64
  at::Tensor indices;  // [B] int64, positions in the dataset
  std::vector<std::string> ids = {};  // [B] of the samples
  at::Tensor label_sets = {};         // [B,K] bool of multi-label data: the classes of each image; else undefined
  bool mixed = false;                 // images and targets are mixtures of two (mixup, cutmix)

  // What predictions are compared with: [B] classes, or [B,K] sets of classes.
  const at::Tensor& true_labels() const { return label_sets.defined() ? label_sets : labels; }
};

}  // namespace sparsight
