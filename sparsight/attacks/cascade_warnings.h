// Signs that a robust accuracy is not to be trusted (Croce and Hein 2020, and the flags of their code).
#pragma once

#include <string>
#include <vector>

#include "sparsight/attacks/cascade.h"

namespace sparsight {

// Whether outputs [B,K] are 0 to 1 and sum to 1, as those of a model whose last layer is a softmax. (Logits never are,
// but by chance.)
bool are_probabilities(const at::Tensor& outputs);
inline constexpr const char* kProbabilitiesWarning = "the model's outputs are probabilities: attacks need logits";

// Warnings about the model: its passes differ, though the stages do not average over passes; its outputs are
// probabilities rather than logits; some correct images have a dlr gradient of 0; it has too few classes for the
// targets. Costs 6 queries and a gradient of each image of `batch`. gradients: false for a model that has none, whose
// dlr is then not looked at.
std::vector<std::string> model_warnings(AttackedModel& model, const AttackBatch& batch,
                                        const std::vector<CascadeStage>& stages, bool gradients = true);

// Warnings about the stages of a cascade over `images` images: an attack without gradients did better than those with
// gradients, by more than 0.2 % of the images.
std::vector<std::string> stage_warnings(const std::vector<StageResult>& stages, int64_t images);

}  // namespace sparsight
