// SWAD: stochastic weight averaging, densely (Cha et al. 2021, "SWAD: Domain Generalization by Seeking Flat Minima").
// ERM on the images of all domains; the weights after every step count, from the start of a valley of the validation
// loss to its end (loss_valley.h). [train] eval_every is the length of a segment (100 in the paper, 50 for VLCS, 500
// for DomainNet), and the validation split should be held-out images of the training domains. Evaluations during the
// training are of the plain weights; the average is the result, and the training stops early where the valley ends.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/algorithms/loss_valley.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct SwadOptions {
  LossValleyOptions valley = {};
  void declare(OptionSet& set);
};

// Length of a segment and tolerance by dataset.
std::vector<ProtocolDefault> swad_defaults();

std::shared_ptr<Algorithm> make_swad(const SwadOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
