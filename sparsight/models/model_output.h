// What a model returns: logits, and explicitly its auxiliary losses and routings. No global collector.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/moe/routing.h"

namespace sparsight {

struct NamedLoss {
  std::string name;   // "importance", summed over layers under one name by the trainer
  at::Tensor value;   // [] fp32, unweighted, differentiable
  double weight = 0;  // what the trainer multiplies it by
};

struct ModelOutput {
  at::Tensor logits;  // [B,K] fp32
  std::vector<NamedLoss> losses;
  std::vector<Routing> routings;  // one per MoE layer, in forward order
};

}  // namespace sparsight
