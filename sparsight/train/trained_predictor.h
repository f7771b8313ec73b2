// The forward pass that a training's algorithm evaluates, of a trained model.
#pragma once

#include "sparsight/eval/evaluate.h"
#include "sparsight/infer/loaded_model.h"

namespace sparsight {

// Whether the algorithm that trained the model predicts with more than it (AlgorithmFacts::predicts).
bool predicts_with_more(const LoadedModel& loaded);

// Raises Error where it does, for what takes the model alone. path: of the run; done: "exported".
void refuse_more_than_model(const LoadedModel& loaded, const std::string& path, const char* done);

// Predicts as the run's own evaluations did: for an algorithm that predicts with more than its model
// with the tensors that the checkpoint has of it, for others with loaded.forward(): `loaded` must
// stay. A checkpoint without such tensors is a warning. Raises Error if they do not fit.
Predictor trained_predictor(const LoadedModel& loaded);

}  // namespace sparsight
