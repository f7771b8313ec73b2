#include "sparsight/train/erm.h"

#include "sparsight/train/loss_step.h"

namespace sparsight {

Erm::Erm(const AlgorithmContext& given) : Algorithm(given), weights_(given) {}

UpdateResult Erm::update(Minibatches& minibatches, const UpdateContext& context) {
  LossStep step(this->context(), weights_, context, minibatches.left());
  while (minibatches.left() > 0) step.add(minibatches.next());
  return step.finish();
}

}  // namespace sparsight
