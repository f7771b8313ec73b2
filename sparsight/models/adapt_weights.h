// Fits weights of another shape into a model: position embeddings of another grid, patch embeddings of another number
// of channels. For load_weights of io/weights.h.
#pragma once

#include "sparsight/io/weights.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// The adapter for `model`, which must outlive it. Position embeddings must come from a square grid with as many prefix
// tokens as the model's; a patch embedding of C channels becomes one of 1 by summing (a grey image shown in every
// channel gives the same tokens), and one of 1 becomes one of C by spreading it evenly.
WeightAdapter weight_adapter(const ImageModel& model);

}  // namespace sparsight
