// Information bottleneck (Ahuja et al. 2021, "Invariance Principle Meets Information Bottleneck for Out-of-Distribution
// Generalization"; DomainBed's IB_ERM and IB_IRM): ERM or IRM plus, from an anneal step on,
//
//   lambda mean_e mean over dimensions of Var(features_e)
//
// with variances that divide by B_e - 1. The optimiser starts anew at either anneal step.
#pragma once

#include "sparsight/dg/algorithms/irm.h"

namespace sparsight {

struct IbErmOptions {
  double ib_lambda = 100;
  int64_t ib_anneal = 500;
  void declare(OptionSet& set);
};

struct IbIrmOptions {
  IrmOptions irm = {};
  IbErmOptions ib = {};
  void declare(OptionSet& set);
};

// features: [B_e,D] per domain, B_e >= 2. The term above without lambda, [].
at::Tensor mean_feature_variance(const std::vector<at::Tensor>& features);

std::shared_ptr<Algorithm> make_ib_erm(const IbErmOptions& options, const AlgorithmContext& context);
std::shared_ptr<Algorithm> make_ib_irm(const IbIrmOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
