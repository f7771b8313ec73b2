// Mixup between domains (Yan et al. 2020, "Improve Unsupervised Domain Adaptation with Mixup Training"; Xu et al. 2020,
// "Adversarial Domain Adaptation with Domain Mixup"; DomainBed): the domains are permuted, domain i is paired with
// domain i+1 (cyclically), each pair draws lambda ~ Beta(alpha, alpha), and
//
//   x = lambda x_i + (1 - lambda) x_j;   minimise the mean over pairs of lambda CE(x, y_i) + (1 - lambda) CE(x, y_j)
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct DomainMixupOptions {
  double alpha = 0.2;
  void declare(OptionSet& set);
};

// Two batches of equally many images and how they are mixed.
struct MixedPair {
  BatchPair of;
  double lambda = 1;
};
at::Tensor mixed_images(const MixedPair& pair);
// logits: [B,K] of the mixed images. The loss above, [].
at::Tensor mixed_risk(const at::Tensor& logits, const MixedPair& pair);
// The step's pairs.
std::vector<MixedPair> random_pairs(const std::vector<Batch>& domains, double alpha, const StepRandom& random);

std::shared_ptr<Algorithm> make_domain_mixup(const DomainMixupOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
