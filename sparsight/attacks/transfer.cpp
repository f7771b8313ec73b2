#include "sparsight/attacks/transfer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include "sparsight/core/error.h"

namespace sparsight {

double TransferResult::success_rate() const {
  const double clean = target_clean.sum().item<double>();
  return clean > 0 ? (target_clean & ~target_correct).sum().item<double>() / clean : 0;
}

TransferResult transfer(const Attack& attack, AttackedModel& source, AttackedModel& target, const AttackBatch& given) {
  if (!(source.range() == target.range()))
    fail("a transfer needs models that take pixels of one range, got ", to_text(source.range()), " and ",
         to_text(target.range()));
  AttackBatch batch = given;
  if (!batch.image.defined()) batch.image = at::arange(batch.pixels.size(0), at::kLong);
  TransferResult result;
  result.source = attack.run(source, batch);
  result.target_clean = still_correct(target, batch, batch.pixels, first_step("transfer.clean", 0));
  result.target_correct = still_correct(target, batch, result.source.pixels, first_step("transfer.result", 0));
  return result;
}

}  // namespace sparsight
