#include "sparsight/attacks/run/attack_success.h"

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/losses.h"

namespace sparsight {

at::Tensor counted_images(const at::Tensor& correct, const at::Tensor& label, const at::Tensor& target) {
  return target.defined() ? label.ne(target) : correct;
}

AttackSuccess attack_success(const at::Tensor& before, const at::Tensor& after, const at::Tensor& label,
                             const at::Tensor& target) {
  const at::Tensor counted = counted_images(classified_correctly(before, label), label, target);
  return {counted, counted & ~withstands_attack(after, {label, target, target.defined()})};
}

}  // namespace sparsight
