// The second half of a step, shared by most algorithms: updates the model's weights once they have gradients.
#pragma once

#include <memory>
#include <optional>

#include "sparsight/train/algorithm.h"

namespace sparsight {

// Clipping ([train] clip_norm), the optimiser of [optimizer], the routers' post-step updates, and the weight average
// ([train] ema_decay or swa_start).
class WeightUpdate {
 public:
  explicit WeightUpdate(const AlgorithmContext& context);

  void zero_grad() { optimizer_->zero_grad(); }
  // Whether some router has a post-step update from the routings; otherwise step() needs no routings.
  bool needs_routings() const { return needs_routings_; }
  double lr(const UpdateContext& context) const { return base_lr_ * context.lr_factor; }

  // routings: of all minibatches of the step, detached. Returns false and changes nothing if the gradient norm is not
  // finite.
  bool step(const UpdateContext& context, const std::vector<Routing>& routings);

  WeightAverage* average() { return average_ ? &*average_ : nullptr; }

  AlgorithmState state() const;
  void load_state(const AlgorithmState& state);

 private:
  std::shared_ptr<ImageModel> model_;
  std::shared_ptr<Optimizer> optimizer_;
  std::vector<at::Tensor> trainable_;
  std::optional<WeightAverage> average_;
  double base_lr_, clip_norm_;
  bool needs_routings_;
};

}  // namespace sparsight
