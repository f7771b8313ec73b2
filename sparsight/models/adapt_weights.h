// Adapts weights of another shape to a model: position embeddings of another grid, patch embeddings and first
// convolutions of another number of channels. For load_weights of io/weights.h.
#pragma once

#include "sparsight/io/weights.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// The adapter for `model`, which must outlive it. Position embeddings must come from a square grid with as many
// embedded prefix tokens as the model's. A patch embedding or first convolution ("conv1", "features.0.0") of C channels
// is summed to 1 channel (a grey image repeated in every channel gives the same result); one of 1 channel is repeated C
// times and divided by C.
WeightAdapter weight_adapter(const ImageModel& model);

}  // namespace sparsight
