// Sends tokens to the experts chosen for them and combines the results. A layer reaches its experts only through its
// dispatcher, so that an expert-parallel one can replace the local one. Letters: moe/axes.md.
#pragma once

#include <memory>

#include "sparsight/moe/experts.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // tokens: [N,D]. Returns [N,O]: the combined outputs of each token's experts; 0 for tokens without kept
  // assignments. Differentiable in tokens, gates (or the weights of a soft routing) and experts.
  virtual at::Tensor run(const at::Tensor& tokens, const Routing& routing, Experts& experts,
                         const ExpertContext& context) = 0;
};

// All experts are in this process.
std::shared_ptr<Dispatcher> local_dispatcher();

}  // namespace sparsight
