// ERM with a simple moving average of the weights (Arpit et al. 2022, "Ensemble of Averages: Improving Model Selection
// and Boosting Performance in Domain Generalization"): evaluation and prediction use the mean of the weights after
// update `start`, start + 1, ... (counted from 0); the weights themselves before. The mean over models of several runs,
// the paper's ensemble, is that of their predictions.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct ErmSmaOptions {
  int64_t start = 100;
  void declare(OptionSet& set);
};

std::shared_ptr<Algorithm> make_erm_sma(const ErmSmaOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
