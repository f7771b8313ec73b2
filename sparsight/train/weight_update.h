// The second half of a step, shared by most algorithms: updates the model's weights once they have gradients.
#pragma once

#include <memory>
#include <optional>

#include "sparsight/models/spread_experts.h"
#include "sparsight/train/algorithm.h"
#include "sparsight/train/optimizer_shards.h"

namespace sparsight {

struct WeightUpdateOptions {
  std::vector<OptimizedParameter> own = {};  // the algorithm's own parameters, updated and saved with the model's
  std::optional<AverageRule> average = {};   // instead of [train] ema_decay and swa_start
};

// Clipping ([train] clip_norm), the optimiser of [optimizer], the routers' post-step updates, and the weight average
// ([train] ema_decay or swa_start).
class WeightUpdate {
 public:
  explicit WeightUpdate(const AlgorithmContext& context, const WeightUpdateOptions& options = {});

  void zero_grad();
  // Whether some router has a post-step update from the routings; otherwise step() needs no routings.
  bool needs_routings() const { return needs_routings_; }
  double lr(const UpdateContext& context) const { return base_lr_ * context.lr_factor; }

  // routings: of all minibatches of the step, detached. last: false if the optimiser has further steps in this update,
  // which weight averages then wait for. Returns false and changes nothing if the gradient norm is not finite.
  bool step(const UpdateContext& context, const std::vector<Routing>& routings, bool last = true);

  // A new optimiser: for a loss that changes abruptly, whose moments would not fit.
  void reset_optimizer();
  // Instead of that of [optimizer]. It is not part of the state.
  void set_base_lr(double lr) { base_lr_ = lr; }

  // The parameters that are updated, those of the model first.
  const std::vector<at::Tensor>& trainable() const { return trainable_; }
  // Those of them that every rank has, and those of spread experts, of which each rank has a part.
  const std::vector<at::Tensor>& everywhere() const { return everywhere_; }
  const std::vector<at::Tensor>& spread() const { return spread_; }
  // Who has which part of the latter.
  const dist::ExpertRanks& expert_ranks() const { return spread_names_.ranks(); }
  WeightAverage* average() { return average_ ? &*average_ : nullptr; }

  // Where ranks share out the optimiser: all of its state on rank 0, or on each rank its own, as [dist]
  // checkpoint_parts says.
  AlgorithmState state() const;
  void load_state(const AlgorithmState& state);

 private:
  double norm() const;  // of the gradients, in which each expert counts once

  std::shared_ptr<ImageModel> model_;
  std::vector<OptimizedParameter> own_;
  Json config_;                            // the section [optimizer]
  std::optional<OptimizerShards> shards_;  // where ranks share out the optimiser
  std::shared_ptr<Optimizer> optimizer_;   // of the own shard
  std::vector<at::Tensor> trainable_;
  std::vector<at::Tensor> everywhere_, spread_;
  std::optional<WeightAverage> average_;
  double base_lr_, clip_norm_;
  SpreadParameters spread_names_;
  bool needs_routings_, saves_own_part_;
};

// The rule of [train] ema_decay or swa_start; nothing without.
std::optional<AverageRule> average_rule(const TrainOptions& train);

}  // namespace sparsight
