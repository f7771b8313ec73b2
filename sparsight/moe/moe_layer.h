// The mixture-of-experts layer: router, experts, combination, losses. Letters: moe/axes.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/moe/experts.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/router.h"

namespace sparsight {

// Where a layer stands in a model.
struct MoePlace {
  std::string path;        // "blocks.3.mlp": names the layer's routings and random streams
  int64_t width = 0;       // D
  int64_t mlp_hidden = 0;  // hidden width of the MLP that the layer replaces: F unless [moe] hidden says otherwise
  int64_t outputs = 0;     // numbers that an expert answers a token with; 0: D
};

struct MoeOutput {
  at::Tensor tokens;                // [N,D], or [N,outputs] where the place says so
  Routing routing;                  // of a router that chooses
  std::optional<SoftRouting> soft;  // of a router that mixes; `routing` then has no tokens
  std::vector<NamedLoss> losses;    // while training
};

class MoeLayer : public torch::nn::Module {
 public:
  MoeLayer(const MoeSpec& spec, const MoePlace& place);

  // tokens: [N,D], N = layout.images * layout.per_image. Tokens of an empty pool give an empty output. Raises Error for
  // tokens of another shape.
  // Padding (pool.valid) gives 0 and takes part in nothing.
  MoeOutput forward(const at::Tensor& tokens, const TokenLayout& layout, const StepRandom& random,
                    const PoolInfo& pool = {});

  const std::string& path() const { return path_; }
  Router& router() { return *router_; }
  Experts& experts() { return *experts_; }
  // Puts packed experts (Experts::packed) in the place of its own, and of those that are shared; false if there are
  // none of the routed ones. Whoever has the former experts keeps them unchanged; else their memory is free.
  bool pack_experts(WeightType type);

 private:
  // What becomes of the routed experts' answer: shared experts are added, the sigmoid taken, padding set to 0.
  at::Tensor finish(at::Tensor routed, const at::Tensor& tokens, const StepRandom& random, const PoolInfo& pool);
  // What experts under `name` draw with; nothing in evaluation.
  std::optional<ExpertRandom> expert_random(const char* name, const StepRandom& random, const PoolInfo& pool) const;

  std::string path_;
  int64_t width_;
  std::shared_ptr<Router> router_;
  std::shared_ptr<Experts> experts_;
  std::shared_ptr<Experts> shared_;  // null without shared experts
  int64_t shared_count_;
  bool output_sigmoid_;
  CapacityOptions capacity_;
  LossOptions losses_;
};

// For a model that from now on only answers: packs the experts of its MoE layers. Returns of how many layers.
int64_t pack_experts(torch::nn::Module& model, WeightType type);

// Whether some router of the model learns from routings; else nobody need keep them until the step ends.
bool learns_from_routings(const torch::nn::Module& model);

// After an optimiser step: hands each MoE layer's router its layer's routings of all batches of the step.
void after_step(torch::nn::Module& model, const std::vector<Routing>& routings);

}  // namespace sparsight
