// The mixture-of-experts layer: router, experts, combination, losses. Letters: moe/axes.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sparsight/cost/convention.h"
#include "sparsight/cost/part_cost.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/route_tokens.h"

namespace sparsight {

// Where a layer stands in a model.
struct LayerContext {
  std::string path;        // "blocks.3.mlp": names the layer's routings and random streams
  int64_t width = 0;       // D
  int64_t mlp_hidden = 0;  // hidden width of the MLP that the layer replaces: F unless [moe] hidden says otherwise
  int64_t outputs = 0;     // output width of an expert; 0: D
  bool can_share_router = false;  // the model hands the layer the routing of its one router, if [router] scope says so
};

struct MoeInput {
  at::Tensor tokens;  // [N,D], N = layout.images * layout.per_image
  TokenLayout layout;
  ForwardMode mode = {};
  StepRandom random = {};
  RoutingContext context = {};
};

struct MoeOutput {
  at::Tensor tokens;  // [N,D], or [N,outputs] where the place says so
  Routing routing;    // with its losses, where the pass asks for them
};

// What decides for an MoE layer: the layer itself, or the model.
class HasRouter {
 public:
  virtual ~HasRouter() = default;
  virtual Router* own_router() = 0;                     // null where somebody else decides
  virtual const std::string& routing_name() const = 0;  // Routing::layer of its decisions
  virtual RoutingPolicy& policy() = 0;

  // Calls visit("router" | "capacity" | "losses", settings bound to what decides); nothing where somebody else decides.
  void declare_settings(const std::function<void(const std::string& section, OptionSet& set)>& visit);
};

// Every part of the model that decides for MoE layers, in the order of its modules.
void for_each_router_owner(const torch::nn::Module& model, const std::function<void(HasRouter&)>& visit);

class MoeLayer : public torch::nn::Module, public HasRouter {
 public:
  // With [router] scope = "model" the layer has no router: it only applies. Raises UsageError for that where the place
  // cannot share one.
  MoeLayer(const MoeSpec& spec, const LayerContext& place);

  // Decides: router, losses, capacity (route_tokens.h). Raises Error for tokens of another shape than the layout's or
  // the layer's width.
  Routing route(const MoeInput& input);
  // Computes: the experts of the kept assignments, combined, and the shared experts. The routing may be any of as many
  // tokens and experts: this layer's, another's, one from a file. input.context.valid: padding gives 0. Raises Error
  // for a routing of other tokens or experts.
  at::Tensor apply(const MoeInput& input, const Routing& routing);
  // Both. Tokens of an empty batch give an empty output. Padding gives 0 and takes part in nothing.
  MoeOutput forward(const MoeInput& input);

  const std::string& path() const { return path_; }
  Router* own_router() override { return router_.get(); }
  const std::string& routing_name() const override { return path_; }
  RoutingPolicy& policy() override { return policy_; }
  Router& router() { return *router_; }
  Experts& experts() { return *experts_; }
  // Puts packed experts (Experts::packed) in the place of its own, and of those that are shared; false if there are
  // none of the routed ones. References to the former experts stay valid; without any, their memory is freed.
  bool pack_experts(WeightType type);

  // The parts "<path>.router", ".experts" and, if there are any, ".shared", for an image of layout.per_image tokens.
  // A layer without a router of its own is told the one that decides; its cost is the model's.
  std::vector<PartCost> cost(const TokenLayout& layout, const CostOptions& options,
                             const Router* deciding = nullptr) const;

 private:
  void check(const MoeInput& input) const;
  // What becomes of the routed experts' answer: shared experts are added, the sigmoid taken, padding set to 0.
  at::Tensor finish(at::Tensor routed, const MoeInput& input);
  ExpertContext expert_context(const char* name, const MoeInput& input) const;

  std::string path_;
  int64_t width_;
  int64_t expert_count_, outputs_;  // E, and numbers of a token's output
  std::shared_ptr<Router> router_;  // null where the model's router decides
  std::shared_ptr<Experts> experts_;
  std::shared_ptr<Experts> shared_;  // null without shared experts
  std::shared_ptr<Dispatcher> dispatcher_;
  int64_t shared_count_;
  bool output_sigmoid_;
  RoutingPolicy policy_;
};

// For a model used only for inference: packs the experts of its MoE layers. Returns the number of layers.
int64_t pack_experts(torch::nn::Module& model, WeightType type);

// Whether some router of the model learns from routings; else nobody need keep them until the step ends.
bool needs_post_step_update(const torch::nn::Module& model);

// After an optimiser step: hands each router of the model its own routings of all batches of the step.
void post_step_update(torch::nn::Module& model, const std::vector<Routing>& routings);

}  // namespace sparsight
