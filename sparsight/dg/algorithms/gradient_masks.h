// Updates only where the domains' gradients agree. AND-mask (Parascandolo et al. 2021, "Learning Explanations That Are
// Hard to Vary") and SAND-mask (Shahtalebi et al. 2021, "SAND-mask: An Enhanced Gradient Masking Strategy for the
// Discovery of Invariances in Domain Generalization"), as in DomainBed. Per entry of a parameter, with g_e = dR_e:
//
//   and:   m = 1 if |mean_e sign g_e| >= tau else 0
//   sand:  m = max(0, tanh(k (|mean_e sign g_e| - tau) / Var_e g_e)), a variance that divides by E - 1
//
// and the gradient becomes m mean_e g_e / (1e-10 + mean of m over the parameter). The auxiliary losses of routed layers
// are part of each R_e.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct AndMaskOptions {
  double tau = 1;
  void declare(OptionSet& set);
};

struct SandMaskOptions {
  double tau = 1, k = 10;
  void declare(OptionSet& set);
};

// gradients: [E,...] of one parameter. Returns [...].
at::Tensor and_masked(const at::Tensor& gradients, double tau);
at::Tensor sand_masked(const at::Tensor& gradients, const SandMaskOptions& options);

std::shared_ptr<Algorithm> make_and_mask(const AndMaskOptions& options, const AlgorithmContext& context);
std::shared_ptr<Algorithm> make_sand_mask(const SandMaskOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
