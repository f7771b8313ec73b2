// What an attack on one image of a batch does to the others, which share the experts' capacity with it. Letters:
// moe/axes.md.
#pragma once

#include <memory>

#include "sparsight/attacks/attack.h"
#include "sparsight/models/image_model.h"

namespace sparsight::robust_moe {

// Attacks the first image of each batch among the others, which stay as they are; images that do not fill a batch are
// left out. Tokens take slots in their order, so the first image is the one that can take most from the others. Of the
// other images of all batches, in percent:
//   others (their number), changed (other prediction), error_before, error_after, lost (images that have fewer kept
//   assignments than before, over all MoE layers), lost_assignments (of the assignments that were kept before, those
//   that these images have fewer)
// and of all assignments of the batches dropped_before, dropped_after. Raises Error unless there is a batch of two
// images.
Json measure_damage(const std::shared_ptr<ImageModel>& model, const AttackBatch& images, const Attack& attack,
                    int64_t batch);

}  // namespace sparsight::robust_moe
