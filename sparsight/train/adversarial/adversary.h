// The attack within adversarial training: it changes the pixels of a batch at the current weights, before these are
// trained on it. It computes no gradients of weights. Letters: moe/axes.md.
#pragma once

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/pgd.h"
#include "sparsight/train/loss_step.h"

namespace sparsight {

// What every adversarial training has.
struct AdversaryOptions {
  ThreatOptions threat = {};  // [-1,1] and other ranges are converted: the pixels of a batch are in 0..1
  std::string mode = "training";
  void declare(OptionSet& set);
};

// The threat of a training. Raises UsageError for an epsilon that lets every pixel have any value.
ThreatModel training_threat(const AlgorithmContext& context, const ThreatOptions& options);

class Adversary {
 public:
  // losses: attack in a pass that computes the auxiliary losses. Raises UsageError for invalid options.
  Adversary(const AlgorithmContext& context, const AdversaryOptions& options, bool losses = false);

  // The model in the mode of the attack: never with dropout, drop path or batch statistics. The router noise of its
  // passes follows from the step of training.
  AttackedImageModel model(const UpdateContext& update) const;
  // The threat, with a seed for random starts that follows from the step of training.
  AttackContext attack(const UpdateContext& update) const;
  const ThreatModel& threat() const { return threat_; }

  // batch.images under attack, [B,C,H,W]. numbers: [B] int64 of the images in the step. The attack is one with the
  // context attack(update).
  at::Tensor attacked(const Pgd& attack, const Batch& batch, const at::Tensor& numbers,
                      const UpdateContext& update) const;

 private:
  std::shared_ptr<ImageModel> model_;
  ThreatModel threat_;
  ForwardMode mode_;
  bool bf16_;
};

}  // namespace sparsight
