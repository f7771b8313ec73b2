// Risk extrapolation (Krueger et al. 2021, "Out-of-Distribution Generalization via Risk Extrapolation", equation 8):
//
//   mean_e R_e + lambda_t mean_e (R_e - mean R)²
//
// lambda_t is 1 before the anneal step, and lambda from it on.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct VrexOptions {
  double lambda = 10;
  int64_t anneal = 500;
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_vrex(const VrexOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
