// What an attack maximises: a loss of the logits, the router's auxiliary losses, and for models with noise the mean of
// both over several passes (expectation over transformation, EOT). Section 4.6 of Puigcerver et al. 2022 attacks the
// cross entropy plus the training's balance losses.
#pragma once

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/attacked_model.h"
#include "sparsight/core/options.h"

namespace sparsight {

struct RouterLossOptions {
  std::vector<std::string> router_losses;  // names in ModelOutput::losses; empty: none
  double router_weight = 1;                // multiplies the weights of training
  double task_weight = 1;                  // 0: router losses alone
  void declare(OptionSet& set);
};

struct Objective {
  AttackLoss loss = attack_loss::cross_entropy;
  RouterLossOptions router = {};
  int64_t passes = 1;  // of a randomised model, whose losses, gradients and logits are averaged (M of EOT)

  // Whether images of a batch influence each other: a router loss is one number for the whole batch.
  bool coupled(const AttackedModel& model) const { return !router.router_losses.empty() || model.coupled(); }
};

// At given pixels. All without history.
struct AttackEvaluation {
  at::Tensor loss;      // [B], mean over passes
  at::Tensor gradient;  // [B,...]: of the sum of the losses, mean over passes
  at::Tensor correct;   // [B] bool: in at least half of the passes
  at::Tensor logits;    // [B,K], mean over passes
};

// pixels: [B,...], instead of batch.pixels. step: numbers the evaluations of an attack, each has random numbers of its
// own. Raises Error if the model does not compute a router loss that the objective has.
AttackEvaluation evaluate_objective(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                                    const at::Tensor& pixels, uint64_t step);
// The same without the gradient, which costs half as much.
AttackEvaluation evaluate_loss(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                               const at::Tensor& pixels, uint64_t step);

}  // namespace sparsight
