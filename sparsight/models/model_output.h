// What a model returns: logits, and explicitly its auxiliary losses and routings. No global collector.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

struct ModelOutput {
  at::Tensor logits;  // [B,K] fp32
  std::vector<NamedLoss> losses;
  std::vector<Routing> routings;           // one per decision that chose experts, in forward order
  std::vector<SoftRouting> soft_routings;  // one per decision that mixed tokens, in forward order
};

}  // namespace sparsight
