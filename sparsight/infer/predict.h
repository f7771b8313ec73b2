// The prediction for one image, and which experts it used.
#pragma once

#include <string>
#include <vector>

#include "sparsight/engine/prediction.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/models/routing_file.h"

namespace sparsight {

struct Prediction : PredictionSummary {
  Routings routings;  // the decisions themselves
};

// image: [C,H,W] uint8 with the channels of loaded.data; any height and width that the transforms accept. One image at
// a time, so that predictions do not depend on other images. Raises Error naming the image for another shape, or if the
// model's output is not finite.
// replay: routings of one image to apply instead of the routers' own.
Prediction predict(const LoadedModel& loaded, const at::Tensor& image, const std::string& name, int64_t top,
                   const Routings& replay = {});

// Predictions for several images at once, equal to those one by one: every image is a capacity group of its own. They
// may differ in the last bits, since matrix products of other sizes round differently.
// inputs: [B,C,H,W], each from model_image(). names: [B]. replay: routings of B images. Raises Error naming the image
// if an output is not finite.
std::vector<Prediction> predict_batch(const LoadedModel& loaded, const at::Tensor& inputs,
                                      const std::vector<std::string>& names, int64_t top, const Routings& replay = {});

}  // namespace sparsight
