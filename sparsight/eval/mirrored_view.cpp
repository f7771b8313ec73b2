#include "sparsight/eval/mirrored_view.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/flip.h>

#include "sparsight/core/error.h"

namespace sparsight {

Predictor with_mirrored_view(Predictor predict) {
  return [predict = std::move(predict)](const ModelInput& input) {
    if (!input.routings.empty()) fail_usage("given routings are for the images themselves; leave out --flip");
    ModelInput mirrored = input;
    mirrored.images = at::flip(input.images, {3});
    mirrored.taps.clear();
    ModelOutput out = predict(input);
    out.logits = (out.logits + predict(mirrored).logits) / 2;
    return out;
  };
}

}  // namespace sparsight
