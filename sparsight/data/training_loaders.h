// The batches that training goes through: one loader of the whole set or one for each domain, each without end.
#pragma once

#include "sparsight/data/loader.h"

namespace sparsight {

// A loader's epochs one after the other. Which batch comes next is a function of the number of batches before it.
class EndlessLoader {
 public:
  // positions: [N] positions of the loader's images in a larger set, for Batch::indices; undefined: where they are.
  explicit EndlessLoader(std::unique_ptr<Loader> loader, at::Tensor positions = {});

  int64_t batches_per_epoch() const { return loader_->batches_per_epoch(); }

  // Goes on as if `batches` had been taken.
  void start(int64_t batches);
  Batch next();

 private:
  std::unique_ptr<Loader> loader_;
  at::Tensor positions_;
};

// One loader, or with options.per_domain one for each domain of `data` that has images, in the order of domains; each
// has batches of its own size and draws independently of the other domains. Raises UsageError for settings that do not
// fit the data.
std::vector<EndlessLoader> training_loaders(const DataSetPtr& data, const TransformPipeline& transforms,
                                            const BatchTransform& batch_transform, const LoaderOptions& options,
                                            uint64_t seed);

}  // namespace sparsight
