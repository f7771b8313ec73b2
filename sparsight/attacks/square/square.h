// The Square attack with restarts (square_run.h is one run).
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/attacks/square/square_run.h"

namespace sparsight {

struct SquareOptions {
  int64_t queries = 5000;
  double initial_area = 0.8;
  int64_t restarts = 1;
  int64_t passes = 1;
  TargetOption goal = {};
  void declare(OptionSet& set);
};

// An image that is misclassified is returned as it is; one that no run fooled, at its point of the smallest margin.
class Square : public Attack {
 public:
  Square(const SquareOptions& options, AttackContext context) : Attack(std::move(context)), options_(options) {}
  bool needs_gradients() const override { return false; }
  bool takes_several_labels() const override { return true; }
  const TargetOption* target() const override { return &options_.goal; }

 protected:
  at::Tensor perturb(AttackedModel& model, const AttackBatch& batch) const override;

 private:
  SquareOptions options_;
};

}  // namespace sparsight
