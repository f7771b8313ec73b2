// What an attack maximises: a loss of the logits, the router's auxiliary losses, a loss of the routing, and for models
// with noise the mean of all over several passes (expectation over transformation, EOT). Section 4.6 of Puigcerver et
// al. 2022 attacks the cross entropy plus the training's balance losses.
#pragma once

#include "sparsight/attacks/attack_batch.h"
#include "sparsight/attacks/attacked_model.h"
#include "sparsight/attacks/routed/gradient_path.h"
#include "sparsight/attacks/routed/router_losses.h"
#include "sparsight/core/options.h"

namespace sparsight {

// Attacks on the routing itself.
struct RoutingAttackOptions {
  std::string loss = "none";  // or one of routing_loss_names()
  double weight = 1;
  void declare(OptionSet& set);

  bool is_on() const { return loss != "none"; }
};

struct Objective {
  AttackLoss loss = attack_loss::automatic;
  RouterLossOptions router = {};
  RoutingAttackOptions routing = {};
  GradientPath path = {};
  int64_t passes = 1;  // of a randomised model, whose losses, gradients and logits are averaged (M of EOT)

  // Whether it is one number of the whole batch, as router losses and drops are.
  bool couples_images() const { return !router.router_losses.empty() || routing.loss == "drops"; }
  // Whether images of a batch influence each other under attack.
  bool coupled(const AttackedModel& model) const { return couples_images() || model.coupled(); }
};

// At given pixels. All without history.
struct AttackEvaluation {
  at::Tensor loss;      // [B], mean over passes
  at::Tensor gradient;  // [B,...]: of the sum of the losses, mean over passes, by the objective's path
  at::Tensor correct;   // [B] bool: withstands_attack() in at least half of the passes
  at::Tensor logits;    // [B,K], mean over passes
};

// pixels: [B,...], instead of batch.pixels. step: numbers the evaluations of an attack, each has random numbers of its
// own. Raises Error if the model does not have what the objective is about: a router loss, routers, noise. A path other
// than the model's costs a second pass without gradient.
AttackEvaluation evaluate_objective(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                                    const at::Tensor& pixels, uint64_t step);
// The same without the gradient, which costs half as much.
AttackEvaluation evaluate_loss(AttackedModel& model, const Objective& objective, const AttackBatch& batch,
                               const at::Tensor& pixels, uint64_t step);

}  // namespace sparsight
