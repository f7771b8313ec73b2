// One router for all MoE layers of a model ([router] scope = "model"): it looks at the tokens before the first of the
// layers, once, and its decision with its gates goes to each of them. Mobile V-MoE (Daxberger et al. 2023), section 3.
// Letters: moe/axes.md.
#pragma once

#include "sparsight/models/block_mlp.h"

namespace sparsight {

class SharedRouter {
 public:
  // Registers the router as "router" in `owner`. `layers`: the paths of the MoE layers that follow its decision.
  // Without layers, or where each has its own router, there is none. The router, not a layer, has its paper's loss
  // weights.
  SharedRouter(torch::nn::Module& owner, const MoeSpec& spec, int64_t width, std::vector<std::string> layers);

  Router* router() const { return router_.get(); }
  RoutingPolicy& policy() { return policy_; }
  const std::string& name() const { return kName; }

  // x: [B,S,D], the tokens before the first MoE layer. Returns the input with the decision for each layer; the decision
  // is appended to `out`. A decision that `input` has under the router's name takes its place.
  ModelInput decide(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out);

 private:
  static const std::string kName;
  std::shared_ptr<Router> router_;
  RoutingPolicy policy_;
  std::vector<std::string> layers_;
};

}  // namespace sparsight
