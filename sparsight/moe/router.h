// The interface of routers: tokens in, Routing out.
#pragma once

#include <string>

#include <torch/nn/module.h>

#include "sparsight/core/random.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

// What a router is made for.
struct RouterShape {
  int64_t width = 0;    // D
  int64_t experts = 0;  // E
};

struct RouterInput {
  at::Tensor tokens;   // [N,D] of any floating type; all images of the batch
  TokenLayout layout;  // layout.images * layout.per_image = N
  std::string layer;   // path of the MoE layer; names its random streams
  StepRandom random;   // noise, drawn only while is_training()
};

class Router : public torch::nn::Module {
 public:
  // Scores are computed in fp32 (fp64 for fp64 tokens) whatever the type of the tokens.
  virtual Routing route(const RouterInput& input) = 0;
};

}  // namespace sparsight
