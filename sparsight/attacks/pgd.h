// Projected gradient descent (Madry et al. 2018), as an attack: ascent. Two presets:
//
//   paper   what Puigcerver et al. 2022 (equation 5 and their code) do: steps of epsilon / steps from the image itself,
//           without projection, clipping, random start or restarts; the last iterate. As the steps add up to epsilon,
//           the projection would do nothing. Pixels may leave their range, and an image may be classified correctly
//           again.
//   strict  every iterate is projected onto the ball and the range of pixels, and the strongest one is returned.
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/routed/objective_options.h"

namespace sparsight {

struct PgdOptions {
  std::string preset = "strict";
  int64_t steps = 40;
  double relative_step = 0;  // step size / epsilon; 0: 1 / steps of the paper, 2.5 / steps of strict
  std::string start = "none";
  int64_t restarts = 1;
  std::string keep = "preset";
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

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  struct Best;
  at::Tensor start(const AttackBatch& batch, int64_t restart) const;
  void run_once(AttackedModel& model, const AttackBatch& batch, int64_t restart, Best& best) const;

  PgdOptions options_;
  Objective objective_;
  bool strict_;
  double step_;  // in units of pixels
};

}  // namespace sparsight
