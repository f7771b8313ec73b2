// What is measured of the adversarial images of one model on another: a dense one and a mixture of experts, for
// example.
#pragma once

#include <memory>

#include "sparsight/attacks/attack.h"
#include "sparsight/models/image_model.h"

namespace sparsight::robust_moe {

// Attacks the source and evaluates the images on the target, `batch` of them together, both in evaluation mode. In
// percent of all images:
//   images, clean_error (of the target), robust_error (of the target on the adversarial images) with its 95 % Wilson
//   interval (robust_low, robust_high), success (of the images that the target classified correctly, those that it does
//   no more), source_error (of the source on its own adversarial images)
Json measure_transfer(const std::shared_ptr<ImageModel>& source, const std::shared_ptr<ImageModel>& target,
                      const AttackBatch& images, const Attack& attack, int64_t batch);

}  // namespace sparsight::robust_moe
