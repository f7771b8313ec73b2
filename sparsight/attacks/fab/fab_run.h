// One run of the fast adaptive boundary attack (FAB; Croce and Hein 2020, algorithm 1): it looks for the closest
// misclassified point. Each step linearises the model, moves onto the boundary of the linear model, drawn towards the
// image, a little beyond it, and after a success back towards the image.
#pragma once

#include "sparsight/attacks/attack.h"

namespace sparsight {

struct FabRunOptions {
  int64_t iterations = 100;
  double max_pull = 0.1;    // alpha_max: largest weight of the projection of the image against that of the point
  double overshoot = 1.05;  // eta
  double backward = 0.9;    // beta: after a success the distance to the image is multiplied by it
};

struct FabRun {
  at::Tensor closest;   // [B,...]: the closest misclassified point; the image where there was none
  at::Tensor distance;  // [B] fp64: of it from the image; infinite where there was none
};

// start: [B,...] in the range of pixels; epsilon plays no part. Towards batch.labels.target where it is defined, else
// towards the class whose boundary is closest, which costs a gradient for each of them. Any misclassified point is a
// success, but of labels that are `targeted` only one that is taken for the target. As losses the observer gets the
// negative distances of the point and of the closest misclassified one.
FabRun run_fab(AttackedModel& model, const AttackBatch& batch, const AttackContext& context,
               const FabRunOptions& options, const at::Tensor& start, uint64_t first);

}  // namespace sparsight
