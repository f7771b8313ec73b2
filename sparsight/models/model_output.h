// What a model returns: logits, and explicitly its auxiliary losses and routings. No global collector.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

struct ModelOutput {
  at::Tensor logits;  // [B,K] fp32
  std::vector<NamedLoss> losses;
  std::vector<Routing> routings;  // one per MoE layer, in forward order
};

}  // namespace sparsight
