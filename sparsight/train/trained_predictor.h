// The forward pass that a training's algorithm evaluates, of a trained model.
#pragma once

#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

// Predicts with loaded.model as the run's own evaluations did: for an algorithm that predicts with more than its model
// (AlgorithmFacts::predicts) with the tensors that the checkpoint has of it, for others with the model alone. A
// checkpoint without such tensors is a warning. Raises Error if they do not fit.
Predictor trained_predictor(const LoadedModel& loaded);

}  // namespace sparsight
