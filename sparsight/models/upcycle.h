// Sparse upcycling (Komatsuzaki et al. 2023): initialises a model with MoE layers from a dense checkpoint, each expert
// as a copy of the MLP, or of the convolutional block, that its layer replaces. Letters: moe/axes.md.
#pragma once

#include "sparsight/io/weights.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

struct UpcycleOptions {
  double noise = 0;  // standard deviation of the noise on each copied weight, as a multiple of the weights' own
  uint64_t seed = 0;
  bool random = false;  // experts keep their random weights; only the rest of the model is the file's
};

// For LoadOptions::derive; `model` must outlive it. Experts that are MLPs with one hidden layer (parameters
// w1 [E,D,F] and w2 [E,F,D] under "<layer>.experts.", with or without b1 [E,F] and b2 [E,D]) take
// "<layer>.fc1.weight" [F,D], fc2.weight [D,F] and the biases if the file has them in matching shapes and no experts.
// The experts of expert_block.h take the parameters and running averages of "<block>." under the same names.
// Noise is added to weights only, not to biases, norms and averages, from streams named after the parameters.
WeightDeriver upcycle_dense_mlps(const ImageModel& model, const UpcycleOptions& options);

}  // namespace sparsight
