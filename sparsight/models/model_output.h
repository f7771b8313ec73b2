// The output of a model: logits, features, taps, auxiliary losses and routings, all explicit. Letters: moe/axes.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

struct ModelOutput {
  at::Tensor logits;              // [B,K] fp32
  std::vector<NamedLoss> losses;  // of all routers, for summing: those to be averaged are divided by their number
  std::vector<Routing> routings;  // one per hard routing, in forward order
  std::vector<SoftRouting> soft_routings;       // one per soft routing, in forward order
  at::Tensor features = {};                     // [B,D]: input of the head, ImageModel::classify()
  std::map<std::string, at::Tensor> taps = {};  // those in ModelInput::taps, attached to the graph
};

}  // namespace sparsight
