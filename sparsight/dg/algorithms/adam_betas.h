// The decays of Adam's moments that adversarial training wants.
#pragma once

#include "sparsight/train/algorithm_context.h"

namespace sparsight {

// The context with these betas in [optimizer], where that is adam or adamw.
inline AlgorithmContext with_betas(AlgorithmContext context, double beta1, double beta2) {
  Json& optimizer = context.config.at("optimizer");
  if (const auto name = optimizer.at("name").get<std::string>(); name == "adam" || name == "adamw") {
    optimizer["beta1"] = beta1;
    optimizer["beta2"] = beta2;
  }
  return context;
}

}  // namespace sparsight
