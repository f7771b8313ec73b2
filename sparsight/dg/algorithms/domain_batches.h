// The batches of a step by training domain. Letters: moe/axes.md; E domains here, numbered by their position in the
// step, and B_e images of domain e.
#pragma once

#include <vector>

#include "sparsight/train/minibatches.h"

namespace sparsight {

// All remaining minibatches, those of the same domain joined: one batch per domain, in the order in which domains first
// appear. Raises Error if an image has another domain than the first of its batch ([loader] per_domain is needed), or
// if there are fewer than `domains` domains.
std::vector<Batch> batches_by_domain(Minibatches& minibatches, size_t domains);

// One after the other.
Batch join_batches(const std::vector<Batch>& batches);

// [B,...] in the order of join_batches() -> [B_e,...] each, views.
std::vector<at::Tensor> split_by_domain(const at::Tensor& rows, const std::vector<Batch>& domains);

// [B] int64: the position of each image's domain, in the order of join_batches().
at::Tensor domain_positions(const std::vector<Batch>& domains);

// The first `images` of a batch.
Batch first_images(const Batch& batch, int64_t images);

// The first images of two batches, as many as the smaller one has.
struct BatchPair {
  Batch a, b;
};
BatchPair equal_batches(const Batch& a, const Batch& b);

}  // namespace sparsight
