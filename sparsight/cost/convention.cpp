#include "sparsight/cost/convention.h"

#include "sparsight/core/nearest_name.h"

namespace sparsight {

const std::vector<CostConvention>& cost_conventions() {
  static const std::vector<CostConvention> conventions{
      {"multiply_adds", "multiply-adds of matrix products and convolutions (MACs)"},
      {"multiply_adds_padded", "the same, where experts compute their whole buffers (GMoE with capacity)", 1, false,
       true},
      {"flops", "two for each multiply-add", 2},
      {"flops_padded", "the same, where experts compute their whole buffers (V-MoE, its adversarial robustness)", 2,
       false, true},
      {"flops_elementwise",
       "two for each multiply-add, and elementwise operations; the last layer norm is of all tokens (Mobile V-MoE)", 2,
       true, false, true},
  };
  return conventions;
}

const CostConvention& cost_convention(const std::string& name) {
  return entry_named(name, cost_conventions(), "cost convention");
}

int64_t flops(const Cost& cost, const CostConvention& convention) {
  const Cost products{.multiply_adds = checked_product(cost.multiply_adds, convention.per_multiply_add)};
  return (products + Cost{.multiply_adds = convention.elementwise ? cost.elementwise : 0}).multiply_adds;
}

}  // namespace sparsight
