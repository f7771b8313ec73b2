// One run of AutoPGD (Croce and Hein 2020, "Reliable evaluation of adversarial robustness with an ensemble of diverse
// parameter-free attacks", algorithm 1): gradient steps with momentum, whose size is halved, image by image, where the
// loss has stopped to grow; after halving an image goes on from its best point. Within the l1 ball steps are sparse and
// have no momentum (sparse_steps.h).
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/routed/objective.h"

namespace sparsight {

struct ApgdRunOptions {
  int64_t iterations = 100;
  double momentum = 0.75;    // weight of the new step; the rest is that of the step before
  double min_growth = 0.75;  // rho: the step is halved unless the loss grew in more than this share of the iterations
  double initial_step = 2;   // times epsilon; these three are of linf and l2
};

struct ApgdRun {
  at::Tensor best;         // [B,...]: of the largest loss
  at::Tensor best_loss;    // [B]
  at::Tensor fooled;       // [B] bool: whether any point was misclassified
  at::Tensor last_fooled;  // [B,...]: the last misclassified point, and `best` where there was none
};

// start: [B,...] within the threat model. first: number of the first evaluation (first_step).
// Differs from the authors' code: the first iteration counts as growth if its loss exceeds that of the start, where
// their code compares it with 0.
ApgdRun run_apgd(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                 const AttackContext& context, const ApgdRunOptions& options, const at::Tensor& start, uint64_t first);

}  // namespace sparsight
