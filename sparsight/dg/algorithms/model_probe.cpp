#include "sparsight/dg/algorithms/model_probe.h"

#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"

namespace sparsight {

ModelOutput probe_model(ImageModel& model, const std::vector<std::string>& taps) {
  if (!model.definition()) fail("this algorithm needs a model that make_model() has built");
  const ImageShape& shape = model.definition()->image;
  const at::NoGradGuard no_grad;
  return model.forward({.images = at::zeros({1, shape.channels, shape.height, shape.width}), .taps = taps});
}

OutputWidths probe_widths(ImageModel& model) {
  const ModelOutput output = probe_model(model);
  return {output.features.size(1), output.logits.size(1)};
}

StepRandom initial_random(const AlgorithmContext& context) { return {static_cast<uint64_t>(context.run.seed), 0}; }

}  // namespace sparsight
