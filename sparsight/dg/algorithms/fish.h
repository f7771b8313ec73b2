// Fish (Shi et al. 2022, "Gradient Matching for Domain Generalization", algorithm 1; as in DomainBed): a copy of the
// model takes one step on each domain in turn, and the model moves towards it,
//
//   theta~ <- theta;   for each e: theta~ <- optimiser(theta~, grad R_e);   theta <- theta + meta_lr (theta~ - theta)
//
// over all weights, statistics of batch norms included. The optimiser of the copy keeps its state between updates. The
// auxiliary losses of routed layers are part of each R_e.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct FishOptions {
  double meta_lr = 0.5;
  bool shuffle = false;
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_fish(const FishOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
