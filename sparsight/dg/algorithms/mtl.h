// Marginal transfer learning (Blanchard et al. 2021, "Domain Generalization by Marginal Transfer Learning"; the neural
// version of DomainBed): the classifier sees the features and an embedding of their domain,
//
//   logits = head(features) + W embedding_e;   minimise sum_e R_e
//
// W [K,D] starts as one half of torch's linear layer of 2D inputs. The embedding is the running mean of the domain's
// features, ema times that of the batch, and carries gradients; in evaluation it is the mean over the batch, as each
// batch comes from one domain. DomainBed's code overwrites the embedding by N(0,1) noise: embedding = "noise" does that
// in training and evaluates without. The best checkpoint keeps W, so that `sparsight eval` adds it too.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct MtlOptions {
  double ema = 0.99;
  std::string embedding = "feature_mean";
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_mtl(const MtlOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
