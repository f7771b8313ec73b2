// Group distributionally robust optimisation (Sagawa et al. 2020, "Distributionally Robust Neural Networks for Group
// Shifts", algorithm 1) with domains as groups:
//
//   q_e <- q_e exp(eta R_e), normalised to sum 1;   minimise sum_e q_e R_e
//
// q starts at 1s.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct GroupDroOptions {
  double eta = 0.01;
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_group_dro(const GroupDroOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
