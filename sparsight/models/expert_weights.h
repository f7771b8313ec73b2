// How many parameters of a model belong to its routed experts, so that those which an image touched can be counted.
// Daxberger et al. 2023, "Mobile V-MoEs", section 5: a per-image router needs only K of E experts of each layer.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sparsight/models/image_model.h"

namespace sparsight {

struct ExpertWeights {
  int64_t other = 0;  // parameters of everything but routed experts: dense layers, routers, shared experts
  // By Routing::layer: the parameters of one expert, summed over all layers that follow this routing. A model-wide
  // router ("router") decides for the expert columns of all of them.
  std::map<std::string, int64_t> of_expert;

  bool empty() const { return of_expert.empty(); }
};

// Empty for a model without MoE layers. Call it before experts are packed.
ExpertWeights expert_weights(const ImageModel& model);

}  // namespace sparsight
