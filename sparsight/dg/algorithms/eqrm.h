// Empirical quantile risk minimisation (Eastwood et al. 2022, "Probable Domain Generalization via Quantile Risk
// Minimization", algorithm 1): after a burn-in with mean_e R_e, minimise the quantile q of the risks' distribution,
// estimated by normal kernels with bandwidth h = 1.06 std(R) E^(-1/5),
//
//   mean_e Phi((q - R_e) / h) = alpha
//
// The optimiser then starts anew with the rate lr (0: that of [optimizer]). Random search draws a burn-in that is no
// whole number: it ends with the first update that is not below it.
//
// Differs from DomainBed's code, which differentiates the ends of its search for q: here the gradient is that of the
// equation (implicit function theorem). Where all risks are equal, q is their mean. And its optimiser starts anew only
// where the burn-in is a whole number, so in none of its random search; here, as in the paper, always.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct EqrmOptions {
  double quantile = 0.75;
  double burn_in = 2500;
  double lr = 1e-6;
  void declare(OptionSet& set);
};

// risks: [E], E >= 2. q, [], differentiable once in the risks.
at::Tensor risk_quantile(const at::Tensor& risks, double quantile);

std::shared_ptr<Algorithm> make_eqrm(const EqrmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
