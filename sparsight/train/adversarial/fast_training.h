// Fast adversarial training (Wong, Rice and Kolter 2020, "Fast is better than free"): one step of 1.25 epsilon along
// the gradient's sign from a random point of the ball, then a step of training on the result.
#pragma once

#include "sparsight/train/adversarial/pgd_training.h"

namespace sparsight {

struct FastTrainingOptions {
  AdversaryOptions adversary = {};
  double relative_step = 1.25;  // step size / epsilon
  void declare(OptionSet& set);
};

class FastTraining : public PgdTraining {
 public:
  FastTraining(const FastTrainingOptions& options, const AlgorithmContext& context);
};

}  // namespace sparsight
