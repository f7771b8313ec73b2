// ERM++ (Teterwak et al. 2025, "ERM++: An Improved Baseline for Domain Generalization", as in DomainBed):
//
//   - the head alone is trained in the first linear_steps updates, by an optimiser of its own with the rate linear_lr;
//     then all of the model
//   - evaluation and prediction use the mean of the weights from update sma_start on
//   - the rate is divided by 10 where the validation loss of the averaged weights has not fallen in two evaluations in
//   a
//     row after linear_steps, and training ends with the third division
//
// The paper's last stage trains once more on training and validation images together, at these rates: set [schedule]
// and the data accordingly.
#pragma once

#include "sparsight/dg/algorithms/domain_algorithm.h"

namespace sparsight {

struct ErmPlusPlusOptions {
  int64_t linear_steps = 500;
  double linear_lr = 5e-5;
  int64_t sma_start = 600;
  void declare(OptionSet& set);
};

// Divides the rate on plateaus of the validation loss, as torch's ReduceLROnPlateau with patience 1.
struct PlateauRate {
  double best = 0;
  int64_t bad = 0, divisions = 0;
  bool begun = false;
  void add(double loss);
  double factor() const;
};

std::shared_ptr<Algorithm> make_erm_plus_plus(const ErmPlusPlusOptions& options, const AlgorithmContext& context);

}  // namespace sparsight
