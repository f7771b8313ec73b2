// TRADES (Zhang et al. 2019, "Theoretically Principled Trade-off between Robustness and Accuracy"): the cross entropy
// of the images as they are, plus beta times the divergence of the model's probabilities under attack from those
// without. The attack maximises that divergence; it needs no labels. Letters: moe/axes.md.
#pragma once

#include "sparsight/train/adversarial/adversary.h"
#include "sparsight/train/erm.h"

namespace sparsight {

struct TradesOptions {
  AdversaryOptions adversary = {};
  double beta = 6;  // 1 / lambda of equation 5
  int64_t steps = 10;
  double relative_step = 0.25;
  double start_deviation = 1e-3;
  TradesOptions() { adversary.mode = "evaluation"; }  // as the authors' code
  void declare(OptionSet& set);
};

// The mean over images of KL(softmax(clean) || softmax(attacked)). Both [B,K]; the gradient reaches both. Returns [].
at::Tensor divergence_under_attack(const at::Tensor& clean, const at::Tensor& attacked);

// Each step has two passes in training mode, with the same random numbers; auxiliary losses are the mean of both. Logs
// "accuracy", which is that under attack, and "clean_accuracy".
class Trades : public Erm {
 public:
  Trades(const TradesOptions& options, const AlgorithmContext& context);

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override;
  // The divergence is that of softmax probabilities.
  bool takes_sigmoid_loss() const override { return false; }

 private:
  at::Tensor attacked(const Batch& batch, const at::Tensor& numbers, const UpdateContext& context) const;

  TradesOptions options_;
  Adversary adversary_;
};

}  // namespace sparsight
