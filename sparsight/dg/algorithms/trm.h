// Transfer risk minimisation (Xu and Jaakkola 2021, "Learning Representations That Support Robust Transfer of
// Predictors", as in DomainBed). Every domain Q has a linear head h_Q of its own. From update `start` on, and after 30
// steps of SGD of rate 0.1 of all heads on their domains' features, detached, the model minimises
//
//   CE + 1/E sum_Q [sum_{P != Q} a_QP R_P(h_Q) - cos_lambda v_Q . grad R_Q(h_Q)]
//
// v_Q = H^-1 grad sum_P a_QP R_P(h_Q), detached: the inverse Hessian of R_Q(h_Q) by 10 terms of the Neumann series,
// fewer where an entry exceeds 10. Gradients and Hessians are those in the weight of h_Q. The weights a, 1 off the
// diagonal at the start, become a_QP exp(eta a_QP R_P(h_Q)), and rows are normalised in the next update.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct TrmOptions {
  double cos_lambda = 1e-4;
  int64_t start = 200;
  double eta = 0.01;
  void declare(OptionSet& set);
};

// v + (I - H) v + ... : an estimate of H^-1 v for the Hessian H of the mean cross entropy of logits = weight features +
// bias in `weight` [K,D], which needs gradients. features: [B,D], labels: [B], v: [K,D]. Returns [K,D], detached.
at::Tensor inverse_hessian_product(const at::Tensor& features, const at::Tensor& labels, const at::Tensor& weight,
                                   const at::Tensor& bias, const at::Tensor& v);

std::shared_ptr<Algorithm> make_trm(const TrmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
