#include "sparsight/attacks/attacked_model.h"

#include "sparsight/core/error.h"

namespace sparsight {

AttackCost operator-(const AttackCost& a, const AttackCost& b) {
  return {a.queries - b.queries, a.gradients - b.gradients};
}

AttackCost& operator+=(AttackCost& sum, const AttackCost& cost) {
  sum.queries += cost.queries;
  sum.gradients += cost.gradients;
  return sum;
}

ModelOutput AttackedModel::forward(const at::Tensor& pixels, const AttackPass& pass) {
  ModelOutput output = run(pixels, pass);
  cost_.queries += pixels.size(0);
  if (output.logits.dim() != 2 || output.logits.size(0) != pixels.size(0) || output.logits.size(1) < 2)
    fail("an attacked model returns logits of shape [", pixels.size(0), ", classes], with at least two classes; got ",
         output.logits.sizes());
  return output;
}

AttackedFunction::AttackedFunction(Logits logits, const PixelRange& range)
    : AttackedModel(range), output_([logits = std::move(logits)](const at::Tensor& pixels, const AttackPass&) {
        ModelOutput output;
        output.logits = logits(pixels);
        return output;
      }) {}

AttackedFunction::AttackedFunction(Output output, bool randomised, const PixelRange& range)
    : AttackedModel(range), output_(std::move(output)), randomised_(randomised) {}

}  // namespace sparsight
