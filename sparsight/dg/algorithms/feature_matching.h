// CORAL and MMD: features whose distribution is the same in all domains,
//
//   mean_e R_e + gamma mean over pairs of domains of distance(features_i, features_j)
//
// with one of the distances of feature_distance.h.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct FeatureMatchingOptions {
  double gamma = 1;
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_coral(const FeatureMatchingOptions& options, const AlgorithmContext& context);
std::shared_ptr<Algorithm> make_mmd(const FeatureMatchingOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
