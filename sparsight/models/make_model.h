// The model factory: for training, inference, copies and tests.
#pragma once

#include <memory>

#include "sparsight/io/safetensors.h"
#include "sparsight/models/image_model.h"

namespace sparsight {

// The normalisation of a resolved configuration: the `normalize` step of [transforms] train and eval. Raises UsageError
// if the two differ, as the model has one normalisation for both.
PixelStatistics pixel_statistics(const Json& resolved);

// The model that [model], [moe], [router], [experts], [capacity] and [losses] describe, for images of this shape. Its
// weights are uninitialised: call initialize(model, seed) of nn/init.h, or load weights. A ParameterBound of
// nn/parameter_memory.h bounds its memory. Raises UsageError for settings that do not fit each other.
std::shared_ptr<ImageModel> make_model(const Json& resolved, const ImageShape& image);
// The same, normalising by `pixels` whatever [transforms] says.
std::shared_ptr<ImageModel> make_model(const Json& resolved, const ImageShape& image, const PixelStatistics& pixels);

// A deep copy of a model that make_model() made: parameters, buffers, number types, what is frozen, and settings
// where their schedules have brought them; it shares nothing with the model. Raises Error for any other model, and
// where weights are not of the shape that the model was made with (packed ones).
std::shared_ptr<ImageModel> clone_model(const ImageModel& model);

// The weights of a file, for a strict load: where it has no statistics of pixels (a checkpoint of earlier versions),
// the model's own, which its configuration names, are added. Raises Error for statistics that no model can have.
NamedTensors with_pixel_statistics(NamedTensors weights, const ImageModel& model);

}  // namespace sparsight
