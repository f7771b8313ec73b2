// Empirical risk minimisation: gradients of the task loss plus the weighted auxiliary losses, averaged over the step's
// minibatches, then one optimiser step.
#pragma once

#include "sparsight/train/weight_update.h"

namespace sparsight {

struct ErmOptions {
  void declare(OptionSet&) {}  // [train] and [optimizer] have all settings
};

class Erm : public Algorithm {
 public:
  explicit Erm(const AlgorithmContext& context);

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override;
  AlgorithmState state() const override { return weights_.state(); }
  void load_state(const AlgorithmState& state) override { weights_.load_state(state); }
  WeightAverage* weight_average() override { return weights_.average(); }
  bool takes_sigmoid_loss() const override { return true; }
  bool takes_class_weights() const override { return true; }

 protected:
  WeightUpdate& weights() { return weights_; }

 private:
  WeightUpdate weights_;
};

}  // namespace sparsight
