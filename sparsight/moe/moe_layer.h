// The mixture-of-experts layer: router, experts, combination, losses. Letters: moe/axes.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/cost/convention.h"
#include "sparsight/cost/part_cost.h"
#include "sparsight/engine/program_builder.h"
#include "sparsight/moe/experts.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/route_tokens.h"

namespace sparsight {

// The position of a layer in a model.
struct LayerContext {
  std::string path;        // "blocks.3.mlp": names the layer's routings and random streams
  int64_t width = 0;       // D
  int64_t mlp_hidden = 0;  // hidden width of the MLP that the layer replaces: F unless [moe] hidden says otherwise
  int64_t outputs = 0;     // output width of an expert; 0: D
  bool can_share_router = false;  // the model can pass the routing of a model-wide router
};

struct MoeInput {
  at::Tensor tokens;  // [N,D], N = layout.images * layout.per_image
  TokenLayout layout;
  ForwardMode mode = {};
  StepRandom random = {};
  RoutingContext context = {};
};

struct MoeOutput {
  at::Tensor tokens;  // [N,D], or [N,outputs] if LayerContext sets them
  Routing routing;    // with its losses, if ForwardMode::losses
};

// An owner of a router: an MoE layer, or the model.
class HasRouter {
 public:
  virtual ~HasRouter() = default;
  virtual Router* own_router() = 0;                     // null if the model's router decides
  virtual const std::string& routing_name() const = 0;  // Routing::layer of its decisions
  virtual RoutingPolicy& policy() = 0;

  // Calls visit("router" | "capacity" | "losses", the settings in use); does nothing without an own router.
  void declare_settings(const std::function<void(const std::string& section, OptionSet& set)>& visit);
};

// All owners of routers in the model, in module order.
void for_each_router_owner(const torch::nn::Module& model, const std::function<void(HasRouter&)>& visit);

class MoeLayer : public torch::nn::Module, public HasRouter {
 public:
  // In a model with one router for all layers (MoeSpec::shares_router) the layer has none: it only applies routings.
  // Raises UsageError for [router] scope = "model" where the model cannot share a router.
  MoeLayer(const MoeSpec& spec, const LayerContext& context);

  // Decides: router, losses, capacity (route_tokens.h). Raises Error for tokens of another shape than the layout's or
  // the layer's width.
  Routing route(const MoeInput& input);
  // Computes: the experts of the kept assignments, combined, plus the shared experts. Any routing with the same numbers
  // of tokens and experts will do: this layer's, another layer's, one from a file. input.context.valid: the output of
  // padding is 0. Raises Error for a routing with other numbers of tokens or experts.
  at::Tensor apply(const MoeInput& input, const Routing& routing);
  // route() and apply(). An empty batch gives an empty output. Padding gives 0 and influences nothing.
  MoeOutput forward(const MoeInput& input);

  const std::string& path() const { return path_; }
  int64_t expert_count() const { return expert_count_; }
  int64_t width() const { return width_; }      // D, of the rows that experts get
  int64_t outputs() const { return outputs_; }  // of those that they return
  Router* own_router() override { return router_.get(); }
  const std::string& routing_name() const override { return path_; }
  RoutingPolicy& policy() override { return policy_; }
  Router& router() { return *router_; }
  Experts& experts() { return *experts_; }  // of this rank
  // Who has which of the expert_count() experts.
  const dist::ExpertRanks& expert_ranks() const { return ranks_; }
  // Adds the layer to a program, in evaluation: returns residual + factor * apply(tokens), [B,S,outputs]. residual:
  // none for 0. factor: [outputs], or undefined for ones. With `read`, only the first tokens of each image are read
  // later.
  engine::Value compile(engine::ProgramBuilder& builder, engine::Value tokens, engine::Value residual,
                        const at::Tensor& factor, std::optional<int64_t> read = {}) const;

  // The parts "<path>.router", ".experts" and, if any, ".shared", for an image with layout.per_image tokens. For a
  // layer without a router pass the `deciding` one, whose cost is the model's.
  std::vector<PartCost> cost(const TokenLayout& layout, const CostOptions& options,
                             const Router* deciding = nullptr) const;

 private:
  // Null if the model's router decides.
  std::shared_ptr<Router> make_own_router(const MoeSpec& spec, const LayerContext& context);
  void check(const MoeInput& input) const;
  // Adds shared experts to the output of the routed ones, applies the sigmoid, sets padding to 0.
  at::Tensor finish(at::Tensor routed, const MoeInput& input);
  ExpertContext expert_context(const char* name, const MoeInput& input) const;

  std::string path_;
  int64_t width_;
  int64_t expert_count_, outputs_;  // E, and the output width
  std::shared_ptr<Router> router_;  // null if the model's router decides
  std::shared_ptr<Experts> experts_;
  std::shared_ptr<Experts> shared_;  // null without shared experts
  std::shared_ptr<Dispatcher> dispatcher_;
  dist::ExpertRanks ranks_;
  int64_t shared_count_;
  bool output_sigmoid_;
  RoutingPolicy policy_;
};

// Whether a router of the model needs post_step_update(); otherwise routings need not be kept until the step ends.
bool needs_post_step_update(const torch::nn::Module& model);

// After an optimiser step: calls post_step_update() of each router with its own routings of all batches of the step.
void post_step_update(torch::nn::Module& model, const std::vector<Routing>& routings);

}  // namespace sparsight
