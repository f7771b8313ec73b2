// One router for all MoE layers of a model (MoeSpec::shares_router): it runs once, on the tokens before the first of
// the layers, and all of them use its routing and gates. Mobile V-MoE (Daxberger et al. 2023), section 3.
// Letters: moe/axes.md.
#pragma once

#include "sparsight/models/block_mlp.h"

namespace sparsight {

class SharedRouter {
 public:
  // Registers the router as "router" in `owner`. layers: the paths of the MoE layers that use its routing. There is no
  // router without layers, or if each layer has its own. Default loss weights are the router's, not the layers'.
  SharedRouter(torch::nn::Module& owner, const MoeSpec& spec, int64_t width, std::vector<std::string> layers);

  Router* router() const { return router_.get(); }
  RoutingPolicy& policy() { return policy_; }
  const std::string& name() const { return kName; }
  static const std::string& routing() { return kName; }  // Routing::layer of its decisions

  // Adds the decision to a program, for all layers: tokens are [B,S,D].
  void compile(engine::ProgramBuilder& builder, engine::Value tokens) const;

  // x: [B,S,D], the tokens before the first MoE layer. Returns the input with the routing for each layer, and appends
  // it to `out`. A routing in `input` under the router's name is used instead of the router's own.
  ModelInput decide(const at::Tensor& x, TokenLayout layout, const ModelInput& input, ModelOutput& out);

 private:
  static const std::string kName;
  std::shared_ptr<Router> router_;
  RoutingPolicy policy_;
  std::vector<std::string> layers_;
};

}  // namespace sparsight
