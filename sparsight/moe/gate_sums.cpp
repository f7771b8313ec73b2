#include "sparsight/moe/gate_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

namespace sparsight {

void normalize_gate_sums(Routing& routing) {
  const at::Tensor& gate = routing.gate;
  at::Tensor sums = at::zeros({routing.tokens}, gate.options()).index_add(0, routing.token, gate);
  if (routing.per_token == 1) sums = sums.detach();
  const at::Tensor own = sums.index_select(0, routing.token);
  routing.gate = gate / at::where(own == 0, at::ones_like(own), own);
}

void apply_gate_rule(Routing& routing, GateRule rule) {
  if (rule == GateRule::sum_to_one) normalize_gate_sums(routing);
  if (rule == GateRule::one) routing.gate = at::ones_like(routing.gate.detach());
}

}  // namespace sparsight
