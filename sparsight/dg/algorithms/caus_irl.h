// CausIRL (Chevalley et al. 2022, "Invariant Causal Mechanisms through Distribution Matching"; DomainBed): the images
// of each domain are divided at a random position, and the features of all first parts are matched with those of all
// second parts, by the distance of CORAL or MMD:
//
//   mean_e R_e + gamma distance(firsts, seconds)
#pragma once

#include "sparsight/dg/algorithms/feature_matching.h"

namespace sparsight {

std::shared_ptr<Algorithm> make_caus_irl_coral(const FeatureMatchingOptions& options, const AlgorithmContext& context);
std::shared_ptr<Algorithm> make_caus_irl_mmd(const FeatureMatchingOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
