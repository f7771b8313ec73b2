// Endless streams of training batches: one loader for the whole dataset or one for each domain.
#pragma once

#include "sparsight/data/loader.h"

namespace sparsight {

// A loader's epochs one after the other. The next batch is a function of the number of batches before it.
class EndlessLoader {
 public:
  // positions: [N] indices of the loader's images in a larger dataset, for Batch::indices; undefined: unchanged.
  explicit EndlessLoader(std::unique_ptr<Loader> loader, at::Tensor positions = {});

  int64_t batches_per_epoch() const { return loader_->batches_per_epoch(); }

  // Continues as if `batches` had been taken, with every stride-th batch from there on.
  void start(int64_t batches, int64_t stride = 1);
  Batch next();

  const std::set<int64_t>& unreadable_images() const { return loader_->unreadable_images(); }

 private:
  std::unique_ptr<Loader> loader_;
  at::Tensor positions_;
  int64_t next_ = 0, stride_ = 1;  // batches are numbered across epochs
};

// One loader, or with options.per_domain one for each domain of `data` that has images, in the order of domains; each
// has its own batch size and samples independently of the other domains. Raises UsageError for settings that do not
// fit the data.
std::vector<EndlessLoader> training_loaders(const DataSetPtr& data, const TransformPipeline& transforms,
                                            const BatchTransform& batch_transform, const LoaderOptions& options,
                                            uint64_t seed);

}  // namespace sparsight
