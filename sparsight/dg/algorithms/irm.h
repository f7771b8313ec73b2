// Invariant risk minimisation (Arjovsky et al. 2019, "Invariant Risk Minimization", IRMv1, equation 8; DomainBed's
// estimate without bias from two halves of each batch):
//
//   mean_e [R_e + lambda_t g_e1 g_e2],   g = d/dw mean CE(w logits) at w = 1
//
// of the images at even and odd positions. lambda_t is 1 before the anneal step, and lambda from it on.
#pragma once

#include "sparsight/dg/algorithms/anneal.h"
#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct IrmOptions {
  double lambda = 100;
  int64_t anneal = 500;
  void declare(OptionSet& set);
};

// logits: [B,K], B >= 2. Returns g_1 g_2, []; g = mean_i sum_k (p_ik - y_ik) logit_ik, so that one derivative remains
// to be taken. Raises Error for fewer than two images.
at::Tensor irm_penalty(const at::Tensor& logits, const Batch& batch);
// The mean over domains.
at::Tensor mean_irm_penalty(const DomainPass& pass);

std::shared_ptr<Algorithm> make_irm(const IrmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
