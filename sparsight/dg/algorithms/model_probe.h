// What an algorithm needs to know about a model before the first step: the shapes of its outputs.
#pragma once

#include "sparsight/models/image_model.h"
#include "sparsight/train/algorithm_context.h"

namespace sparsight {

// The output of a pass in evaluation mode over one black image. Raises Error for a model without definition().
ModelOutput probe_model(ImageModel& model, const std::vector<std::string>& taps = {});

struct OutputWidths {
  int64_t features = 0, classes = 0;  // D, K
};
OutputWidths probe_widths(ImageModel& model);

// The randomness of an algorithm's own initial weights.
StepRandom initial_random(const AlgorithmContext& context);

}  // namespace sparsight
