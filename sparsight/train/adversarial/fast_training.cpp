#include "sparsight/train/adversarial/fast_training.h"

namespace sparsight {

void FastTrainingOptions::declare(OptionSet& set) {
  set.real("relative_step", &relative_step, {1e-6, 1000}, "step size of the attack divided by epsilon");
  adversary.declare(set);
}

FastTraining::FastTraining(const FastTrainingOptions& options, const AlgorithmContext& context)
    : PgdTraining(
          PgdOptions{
              .preset = "strict", .steps = 1, .relative_step = options.relative_step, .start = "ball", .keep = "last"},
          options.adversary, context) {}

}  // namespace sparsight
