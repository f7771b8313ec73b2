// Answers as JSON, in the forms of `sparsight predict --json` and `sparsight-run --routing`.
#pragma once

#include "sparsight/core/options.h"
#include "sparsight/serve/answer.h"
#include "sparsight/serve/served_model.h"

namespace sparsight::serve {

// The `top` most probable classes, of equal ones the lower label first, and how often each layer used its experts
// (none of a layer that mixes tokens).
PredictionSummary prediction_summary(const ServedModel& model, const ImageAnswer& answer, const std::string& image,
                                     int64_t top);

// {layer: {"experts", "tokens_per_image", "prefix_tokens", "grid": [rows, columns], "chosen": for each token
// [[expert, gate], ...]}}; what capacity dropped is left out.
Json routing_json(const ImageAnswer& answer);

}  // namespace sparsight::serve
