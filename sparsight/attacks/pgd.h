// Projected gradient descent (Madry et al. 2018), as an attack: ascent. Two presets:
//
//   paper   what Puigcerver et al. 2022 (equation 5 and their code) do: steps of epsilon / steps from the image itself,
//           without projection, clipping, random start or restarts; the last iterate. As the steps add up to epsilon,
//           the projection would do nothing. Pixels may leave their range, and an image may be classified correctly
//           again.
//   strict  every iterate is projected onto the ball and the range of pixels, and the strongest one is returned.
//
// Within the l1 ball a step changes only the pixels with the largest gradients (sparse l1 descent; Tramer and Boneh
// 2019, "Adversarial Training and Robustness for Multiple Perturbations").
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/routed/objective_options.h"

namespace sparsight {

class Projection;

struct PgdOptions {
  std::string preset = "strict";
  int64_t steps = 40;
  double relative_step = 0;  // step size / epsilon; 0: 1 / steps of the paper, 2.5 / steps of strict
  std::string start = "none";
  int64_t restarts = 1;
  std::string keep = "preset";
  double sparsity = 0.05;
  ObjectiveOptions objective = {};
  TargetOption goal = {};
  void declare(OptionSet& set);
};

class Pgd : public Attack {
 public:
  // Raises UsageError for the paper's preset with what it does not have.
  Pgd(const PgdOptions& options, AttackContext context);

  bool clips_pixels() const override { return strict_; }
  bool couples_images() const override { return objective_.couples_images(); }
  bool takes_several_labels() const override { return true; }
  const TargetOption* target() const override { return &options_.goal; }
  bool takes_norm(Norm) const override { return true; }

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  struct Best;
  at::Tensor start(const AttackBatch& batch, int64_t restart) const;
  at::Tensor next(const Projection& project, const at::Tensor& image, const at::Tensor& x,
                  const at::Tensor& gradient) const;
  void run_once(AttackedModel& model, const AttackBatch& batch, int64_t restart, Best& best) const;

  PgdOptions options_;
  Objective objective_;
  bool strict_;
  double step_;  // in units of pixels
};

}  // namespace sparsight
