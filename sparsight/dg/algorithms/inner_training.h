// A copy of the model that takes steps of its own, for algorithms that look ahead (Fish, MLDG). Letters: moe/axes.md.
#pragma once

#include "sparsight/train/loss_step.h"

namespace sparsight {

class InnerTraining {
 public:
  explicit InnerTraining(const AlgorithmContext& context);

  // The copy's weights become those of the model; the optimiser's state stays.
  void copy_weights();
  void reset_optimizer() { weights_.reset_optimizer(); }
  // A step of ERM on one batch. context: of the outer update, number: of this step within it, so that every step has
  // random numbers of its own. before_step: called when the gradients are complete; null: nothing.
  UpdateResult step(const Batch& batch, const UpdateContext& context, int64_t number,
                    const std::function<void()>& before_step = {});
  // The gradients of the loss of a batch, without a step, by parameter; undefined where there is none.
  UpdateResult gradients(const Batch& batch, const UpdateContext& context, int64_t number,
                         std::vector<at::Tensor>& found);

  ImageModel& model() { return *context_.model; }
  const std::vector<at::Tensor>& trainable() const { return weights_.trainable(); }
  AlgorithmState state() const { return weights_.state(); }
  void load_state(const AlgorithmState& state) { weights_.load_state(state); }

 private:
  std::shared_ptr<ImageModel> outer_;
  AlgorithmContext context_;  // with the copy as its model, and without averages
  WeightUpdate weights_;
};

}  // namespace sparsight
