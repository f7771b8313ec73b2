// The optimiser of networks that an algorithm trains beside the model, with settings of its own. Their values and its
// state are part of the algorithm's state.
#pragma once

#include "sparsight/train/algorithm.h"

namespace sparsight {

struct AdamSettings {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double weight_decay = 0;
};

class SideOptimizer {
 public:
  SideOptimizer() = default;
  // Adam. tensors: leaves that need gradients. name: of the network, in checkpoints.
  SideOptimizer(const std::string& name, const NamedTensors& tensors, const AdamSettings& settings);
  // SGD without momentum.
  SideOptimizer(const std::string& name, const NamedTensors& tensors, double sgd_lr);

  void zero_grad() { optimizer_->zero_grad(); }
  void step(const UpdateContext& context) { optimizer_->step(lr_ * context.lr_factor); }
  // A loss that was computed of these tensors: sets their gradients and steps. Returns false, and changes nothing, if
  // it is not finite.
  bool minimize(const at::Tensor& loss, const UpdateContext& context);

  void save(AlgorithmState& state) const;
  void load(const AlgorithmState& state);

 private:
  std::string name_;
  NamedTensors tensors_;
  std::shared_ptr<Optimizer> optimizer_;
  double lr_ = 0;
};

}  // namespace sparsight
