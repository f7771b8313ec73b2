// Checks that registered components declare their cost. Each function returns a complaint, or "" if there is none.
#pragma once

#include <cmath>
#include <string>

#include "sparsight/core/error.h"
#include "sparsight/models/image_model.h"
#include "sparsight/moe/moe_layer.h"

namespace sparsight::test {

inline int64_t parameter_count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

// The check of every component.
inline std::string cost_complaint(const Cost& cost, const torch::nn::Module& module, const std::string& name) {
  if (cost.assumed) return name + " declares no cost: override cost()";
  if (cost.parameters != parameter_count(module))
    return cat(name, " says that it has ", cost.parameters, " parameters, but has ", parameter_count(module));
  if (cost.active_parameters > cost.parameters) return name + " uses more parameters than it has";
  if (cost.parameters > 0 && cost.multiply_adds + cost.elementwise == 0) return name + " says that it computes nothing";
  return "";
}

// routed: assignments of an image, as the router makes them while training. May be fewer than declared where a router
// skips some.
inline std::string router_complaint(const RouterCost& cost, const Router& router, double routed,
                                    const std::string& name) {
  if (const std::string wrong = cost_complaint(cost.cost, router, name); !wrong.empty()) return wrong;
  if (!cost.varying && (routed > cost.rows + 0.5 || routed < cost.rows / 2))
    return cat(name, " says that it makes ", cost.rows, " assignments of an image, but makes ", routed);
  return "";
}

inline std::string model_complaint(ImageModel& model, const std::string& name) {
  const std::vector<PartCost> parts = model.cost({});
  if (const std::string wrong = cost_complaint(total(parts), model, name); !wrong.empty()) return wrong;
  for (const PartCost& part : parts) {
    int64_t owned = 0;
    for (const auto& p : model.named_parameters())
      if (p.key() == part.part || p.key().starts_with(part.part + ".")) owned += p.value().numel();
    if (owned != part.cost.parameters)
      return cat(name, ": part ", part.part, " says ", part.cost.parameters, " parameters, but has ", owned);
  }
  return "";
}

}  // namespace sparsight::test
