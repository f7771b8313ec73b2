// Representation self-challenging (Huang et al. 2020, "Self-Challenging Improves Cross-Domain Generalization",
// equations 1 to 5, as in DomainBed): with g the gradient of the true logit with respect to the features,
//
//   1. per image the features whose gradient is at or above the (1 - drop_features) quantile are muted;
//   2. only in those images whose probability of the true class falls by at least the (1 - drop_images) quantile of the
//      falls in the batch;
//   3. minimise the CE of the muted features.
//
// Quantiles are interpolated linearly.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct RscOptions {
  double drop_features = 1.0 / 3, drop_images = 1.0 / 3;
  void declare(OptionSet& set);
};

// gradient: [B,D]. 1 for features that stay, 0 for muted ones, [B,D].
at::Tensor rsc_feature_mask(const at::Tensor& gradient, double drop);
// fall: [B] of the true class's probability. 1 for images that keep all features, [B].
at::Tensor rsc_image_mask(const at::Tensor& fall, double drop);

std::shared_ptr<Algorithm> make_rsc(const RscOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
