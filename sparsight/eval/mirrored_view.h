// Test-time augmentation by mirroring: a prediction from two views of an image.
#pragma once

#include "sparsight/models/image_model.h"

namespace sparsight {

// The mean of the logits of each image and of its mirror image, left to right; routings, features and all else are
// those of the image itself. Given routings, which belong to one view, raise UsageError.
Predictor with_mirrored_view(Predictor predict);

}  // namespace sparsight
