// Between a routing and the experts: who carries tokens to the experts that were chosen for them, and what comes back.
// A layer asks its dispatcher and nobody else, so that one for experts in several processes can take the place of the
// local one. Letters: moe/axes.md.
#pragma once

#include <memory>

#include "sparsight/moe/experts.h"
#include "sparsight/moe/routing.h"

namespace sparsight {

class Dispatcher {
 public:
  virtual ~Dispatcher() = default;
  // tokens: [N,D]. Returns [N,O]: what the experts make of each token, combined as the routing says; 0 for tokens
  // without kept assignments. Differentiable in tokens, gates (or the weights of a soft routing) and experts.
  virtual at::Tensor run(const at::Tensor& tokens, const Routing& routing, Experts& experts,
                         const ExpertContext& context) = 0;
};

// All experts are in this process.
std::shared_ptr<Dispatcher> local_dispatcher();

}  // namespace sparsight
