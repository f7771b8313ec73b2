// Metrics of images with several labels: whether the class with the largest logit is among the image's labels. Used for
// JFT-300M by Puigcerver et al. 2022 and Riquelme et al. 2021. Letters: moe/axes.md.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace sparsight {

// Counts, which add up over batches.
struct PrecisionAtOne {
  int64_t images = 0, hits = 0;

  // precision@1, 0 to 1; 0 without images.
  double precision() const { return images > 0 ? static_cast<double>(hits) / static_cast<double>(images) : 0; }
  // The false discovery rate FDR@1 = 1 - precision@1, the classification error where images have one label.
  double false_discovery_rate() const { return images > 0 ? 1 - precision() : 0; }
  void add(const PrecisionAtOne& other) { images += other.images, hits += other.hits; }
};

// logits: [B,K]. labels: [B,K], other than 0 for each class of the image, or [B] int64 classes. valid: [B] bool, false
// for padding; undefined: none. Equal logits: the lowest class. An image without labels is no hit. Raises Error for
// other shapes.
PrecisionAtOne precision_at_one(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& valid = {});

}  // namespace sparsight
