// The first half of a step, shared by most algorithms: the gradients of the loss of its minibatches. Then WeightUpdate
// follows them. Letters: moe/axes.md.
#pragma once

#include <optional>
#include <set>

#include "sparsight/dist/gradient_sum.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/train/minibatch_report.h"
#include "sparsight/train/weight_update.h"

namespace sparsight {

// One step: the mean over `minibatches` of a task loss plus the weighted auxiliary losses. Images are numbered across
// all minibatches, so random numbers do not depend on how the batch is divided. Where several processes train the
// model, the minibatches are those of this rank, and each rank counts those of all of them (dist/gradient_sum.h).
class LossStep {
 public:
  // Sets the gradients to 0. Everything given must outlive the step.
  LossStep(const AlgorithmContext& context, WeightUpdate& weights, const UpdateContext& update, int64_t minibatches);

  // [B] int64: the numbers of the next batch's images in the step, from `first` after those of the batches so far.
  at::Tensor numbers(const Batch& batch, int64_t first = 0) const;
  // A pass in training mode over `images` [B,C,H,W] with the labels of the next batch, with these taps.
  ModelOutput forward(const Batch& batch, const at::Tensor& images, int64_t first = 0,
                      const std::vector<std::string>& taps = {}) const;

  // The task loss of [train] with its class weights, [].
  at::Tensor task_loss(const at::Tensor& logits, const Batch& batch) const;

  // Adds the gradients of a batch, with the task loss of [train].
  void add(const Batch& batch);
  // The same for passes over the batch that were made before, with a task loss of their own, []. Auxiliary losses are
  // the mean of those of the passes; the accuracy is that of the last one. more: further numbers of the batch to log.
  void add(const Batch& batch, const std::vector<ModelOutput>& passes, const at::Tensor& task,
           const NamedMeans& more = {});

  // Updates the weights, unless something was not finite. Called once, after all minibatches. last: see
  // WeightUpdate::step().
  UpdateResult finish(bool last = true);
  // The same without an update: the gradients were for another purpose.
  UpdateResult finish_without_update();

 private:
  void report(const Batch& batch, const std::vector<ModelOutput>& passes, MinibatchReport& report) const;
  void report_routers(const Batch& batch, const std::vector<Routing>& routings, MinibatchReport& report) const;
  int64_t first_image(const Batch& batch) const;
  bool all_finite(double loss) const;

  const AlgorithmContext& context_;
  WeightUpdate& weights_;
  const UpdateContext& update_;
  TaskLoss task_loss_;
  bool bf16_;
  int64_t minibatches_, images_ = 0;                // of all ranks
  mutable std::optional<dist::RankCounts> next_;    // images of the ranks' next batches, once they are needed
  std::optional<CollectedMoments> moments_;         // of several ranks
  dist::GradientSum gradients_, expert_gradients_;  // of what every rank has, and of its part of spread experts
  double loss_ = 0;                                 // task loss plus weighted auxiliary losses, summed over minibatches
  double task_ = 0;                                 // task loss alone
  std::set<std::string> not_finite_;                // auxiliary losses
  UpdateResult result_;
  std::vector<Routing> routings_;  // for routers with a post-step update
};

}  // namespace sparsight
