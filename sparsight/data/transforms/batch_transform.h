// Transforms of a whole training batch: mixup (Zhang et al. 2018), CutMix (Yun et al. 2019) and label smoothing
// (Szegedy et al. 2016). With both mixup and CutMix on, each batch gets one of them at random.
#pragma once

#include "sparsight/core/random.h"
#include "sparsight/data/sample.h"
#include "sparsight/data/transforms/transform_options.h"

namespace sparsight {

class BatchTransform {
 public:
  BatchTransform() = default;  // does nothing
  BatchTransform(const TransformOptions& options, int64_t classes);

  // Changes batch.images and sets batch.mixed and batch.targets ([B,K] fp32; rows sum to 1, of multi-label data to
  // about the number of labels). Image i is mixed with image B-1-i.
  void operator()(Batch& batch, RandomStream& random) const;

 private:
  double mixup_ = 0, cutmix_ = 0, label_smoothing_ = 0;
  int64_t classes_ = 0;
};

// A sample of Beta(alpha, alpha), alpha > 0.
double sample_beta(double alpha, RandomStream& random);

}  // namespace sparsight
