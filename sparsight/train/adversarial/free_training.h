// Free adversarial training (Shafahi et al. 2019, "Adversarial Training for Free!", algorithm 1): every batch is
// trained on m times in a row, and the backward pass of each time gives both the gradient of the weights and that of
// the pixels, which moves the perturbation for the next time. The perturbation goes on from batch to batch. Letters:
// moe/axes.md.
#pragma once

#include "sparsight/attacks/threat_model.h"
#include "sparsight/train/erm.h"

namespace sparsight {

struct FreeTrainingOptions {
  ThreatOptions threat = {};
  int64_t replays = 4;       // m
  double relative_step = 1;  // step size / epsilon
  void declare(OptionSet& set);
};

// An update is m steps of the optimiser on the same minibatches, with random numbers of their own; weight averages
// count all of them. A training of the same cost has 1 / m of the epochs.
class FreeTraining : public Erm {
 public:
  FreeTraining(const FreeTrainingOptions& options, const AlgorithmContext& context);

  UpdateResult update(Minibatches& minibatches, const UpdateContext& context) override;
  AlgorithmState state() const override;
  void load_state(const AlgorithmState& state) override;

 private:
  UpdateResult replay(const std::vector<Batch>& batches, const UpdateContext& context);
  std::vector<at::Tensor> perturbations_of_all() const;

  FreeTrainingOptions options_;
  ThreatModel threat_;
  // [B,C,H,W] for each minibatch of a step that is this rank's; from 0 where the shape changes.
  std::vector<at::Tensor> perturbations_;
};

}  // namespace sparsight
