// The Open Inference Protocol, version 2 (KServe's "v2"), in JSON: what requests mean and what answers look like.
// Letters: moe/axes.md; K classes, D features.
//
// Inputs, one of the two: `pixels`, FP32 [B,C,H,W] from 0 to 1; `image`, BYTES [B], files in base64. Outputs: `logits`
// [B,K], `probabilities` [B,K], `features` [B,D], all FP32. An extension, "explain": the answer also has "routing", a
// list of routing_json() (answer_json.h), one for each image.
#pragma once

#include <string_view>

#include "sparsight/core/options.h"
#include "sparsight/serve/batcher.h"
#include "sparsight/serve/served_model.h"

namespace sparsight::serve {

struct InferenceLimits {
  int64_t max_images = 256;  // of a request
  int64_t max_pixels = 0;    // of the file of one image
};

struct InferenceRequest {
  std::string id = {};                    // "" where there is none
  std::vector<std::string> outputs = {};  // as requested; without a request: logits and probabilities
  bool explain = false;
  std::vector<ImageRequest> images = {};  // [B]
};

// Raises HttpError, one line: 400 for what is not such a request, 413 for too many images.
InferenceRequest read_inference(const ServedModel& model, std::string_view body, const InferenceLimits& limits,
                                bool explain);

// answers: [B], none with a problem.
Json inference_json(const ServedModel& model, const InferenceRequest& request, const std::vector<ImageAnswer>& answers);

// The answers to GET /v2 and GET /v2/models/M.
Json server_metadata(const ServedModel& model);  // "models": their names, beside what the protocol has
Json model_metadata(const ServedModel& model);

}  // namespace sparsight::serve
