#include "sparsight/attacks/run/attack_success.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/losses.h"

namespace sparsight {

AttackSuccess attack_success(const at::Tensor& before, const at::Tensor& after, const at::Tensor& label,
                             const at::Tensor& target) {
  const bool targeted = target.defined();
  const at::Tensor counted = targeted ? label.ne(target) : classified_correctly(before, label);
  return {counted, counted & ~withstands_attack(after, {label, target, targeted})};
}

}  // namespace sparsight
