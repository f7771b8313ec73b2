// Trains a model and measures it on the test images.
#pragma once

#include <optional>

#include "sparsight/papers/mobile_vmoe/experiments/mobile_models.h"

namespace sparsight::mobile_vmoe {

// What the test record of a training (metrics.jsonl) says about the model; values that do not apply are null:
//   accuracy         top-1, in percent
//   router_accuracy  images whose most probable expert is that of their super-class, in percent; of guided models
//   entropy          of the usage of the experts over ln E: 1 if all are used alike; mean over routers
//   busiest, unused  percent of the choices that the most used expert has, and experts without any
//   distinct, distinct_most  different experts of an image in a layer: mean and maximum
//   touched          parameters that an image uses, in thousands; all is in `parameters`
//   mflop            operations of an image as the paper counts them, in millions
//   usage            [routers][E] share of the choices of each expert: its histogram
Json model_measures(const Json& test, const MobileModel& model, const MobileCost& cost);

// These of the model trained with this seed, and `train_accuracy`, in percent, of the last epoch. Trains it unless a
// figure did. Raises Error on an interrupt, with a checkpoint written from which any figure goes on.
Json measure_model(const MobileModel& model, const MobileOptions& options, const FigureRun& run, int64_t seed);

// The same, and "difference": its accuracy minus that of the baseline with the same seed; null without one.
Json measure_against(const MobileModel& model, const std::optional<MobileModel>& baseline, const MobileOptions& options,
                     const FigureRun& run, int64_t seed);

}  // namespace sparsight::mobile_vmoe
