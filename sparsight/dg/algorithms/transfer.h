// Transfer (Zhang et al. 2021, "Quantifying and Improving Transferability in Domain Generalization", algorithm 1, as in
// DomainBed). A second head, the adversary h', starts as a copy of the head h; an update is
//
//   1. a step of the model on CE
//   2. a step of the model below the heads on lambda gap, gap = max_e R_e(h') - min_e R_e(h')
//   3. h' <- h, then d_steps times: a step of SGD that raises lambda gap, and h' is moved back to within delta of h
//      (Euclidean distance of all parameters of the heads)
//
// gda (gradient descent and ascent): steps 1 and 2 are plain SGD too, at the rate of [optimizer].
//
// DomainBed draws weight_decay_d and beta1, but its code does not use them, and neither does this. Differs from
// DomainBed, whose gda gives the optimiser of the model the parameters of h', so that nothing of the model is trained.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"
#include "sparsight/dg/protocol_defaults.h"

namespace sparsight {

struct TransferOptions {
  double lambda = 1;
  double delta = 2;
  int64_t d_steps = 10;
  double lr_d = 1e-3;
  bool gda = false;
  void declare(OptionSet& set);
};

// Random search has gda everywhere; the defaults do not.
std::vector<ProtocolDefault> transfer_defaults();

// Moves `tensors` towards `centre`, if they are further away, to the distance delta. Leaves that need gradients
// allowed.
void project_to_ball(const NamedTensors& tensors, const NamedTensors& centre, double delta);

std::shared_ptr<Algorithm> make_transfer(const TransferOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
