// Transfer (Zhang et al. 2021, "Quantifying and Improving Transferability in Domain Generalization", algorithm 1, as in
// DomainBed). A second head, the adversary h', starts as a copy of the head h; an update is
//
//   1. a step of the model on CE
//   2. a step of the model below the heads on lambda gap, gap = max_e R_e(h') - min_e R_e(h')
//   3. h' <- h, then d_steps times: a step of SGD that raises lambda gap, and h' is moved back to within delta of h
//      (Euclidean distance of all parameters of the heads)
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct TransferOptions {
  double lambda = 1;
  double delta = 2;
  int64_t d_steps = 10;
  double lr_d = 1e-3;
  void declare(OptionSet& set);
};

// Moves `tensors` towards `centre`, if they are further away, to the distance delta. Leaves that need gradients
// allowed.
void project_to_ball(const NamedTensors& tensors, const NamedTensors& centre, double delta);

std::shared_ptr<Algorithm> make_transfer(const TransferOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
