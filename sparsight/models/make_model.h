// The model factory, for training, inference, copies and tests.
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
// nn/parameter_memory.h bounds its memory. Raises UsageError for settings that contradict each other.
std::shared_ptr<ImageModel> make_model(const Json& resolved, const ImageShape& image);
// The same, but normalising by `pixels` instead of what [transforms] says. ranks: who has which of the routed experts;
// the model then has those of this rank. Raises UsageError for experts that cannot be spread.
std::shared_ptr<ImageModel> make_model(const Json& resolved, const ImageShape& image, const PixelStatistics& pixels,
                                       const dist::ExpertRanks& ranks = {});

// A deep copy of a model built by make_model(): parameters, buffers, dtypes, frozen parameters, and the current values
// of scheduled settings. It shares no memory with the model. Raises Error for any other model, and for weights that no
// longer have the shape they were built with (packed ones).
std::shared_ptr<ImageModel> clone_model(const ImageModel& model);

// The weights of a file, for a strict load, with the buffers that checkpoints of earlier versions do not have: pixel
// statistics, those of the model, from its configuration; counts of the batches of batch norms (num_batches_tracked),
// so large that training goes on with the momentum itself. Raises Error for invalid statistics.
NamedTensors add_missing_buffers(NamedTensors weights, const ImageModel& model);

}  // namespace sparsight
