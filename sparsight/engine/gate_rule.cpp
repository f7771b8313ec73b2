#include "sparsight/engine/gate_rule.h"

#include <algorithm>

namespace sparsight::engine {

void apply_gate_rule(Routing& routing, GateRule rule) {
  if (rule == GateRule::one) std::fill_n(routing.gate.data(), routing.assignments(), 1.0F);
  if (rule != GateRule::sum_to_one) return;
  thread_local Array<float> sums;
  std::fill_n(sums.resize(routing.tokens), routing.tokens, 0.0F);
  for (int64_t a = 0; a < routing.assignments(); ++a) sums[routing.token[a]] += routing.gate[a];
  for (int64_t a = 0; a < routing.assignments(); ++a)
    if (const float sum = sums[routing.token[a]]; sum != 0) routing.gate[a] /= sum;
}

}  // namespace sparsight::engine
