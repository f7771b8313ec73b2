// What the C interface answers, as what is printed.
#pragma once

#include "sparsight/engine/prediction.h"
#include "sparsight/infer.hpp"

namespace sparsight::run {

// The `top` most probable classes, and how often each expert was used by what capacity kept.
PredictionSummary summary(const infer::Model& model, const std::string& image, const infer::Prediction& prediction,
                          const std::vector<infer::Routing>& routings, int64_t top);

// {layer: {"experts", "tokens_per_image", "prefix_tokens", "grid", "chosen": for each token [[expert, gate], ...]}};
// what capacity dropped is left out.
Json routing_json(const std::vector<infer::Routing>& routings);

}  // namespace sparsight::run
