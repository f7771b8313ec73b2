// Penalties that begin at a certain update (item G25): before it they have another weight, and in it the optimiser
// starts anew, as the moments of Adam do not fit gradients of a sudden other size (DomainBed; IRM's authors do the
// same).
#pragma once

#include "sparsight/train/weight_update.h"

namespace sparsight {

struct Anneal {
  int64_t at = 500;  // the update, counted from 0, from which on the weight is `after`

  double weight(const UpdateContext& update, double before, double after) const {
    return begun(update) ? after : before;
  }
  bool begun(const UpdateContext& update) const { return static_cast<int64_t>(update.random.step) >= at; }
  bool begins(const UpdateContext& update) const { return static_cast<int64_t>(update.random.step) == at; }
  void reset(const UpdateContext& update, WeightUpdate& weights) const {
    if (begins(update)) weights.reset_optimizer();
  }
};

}  // namespace sparsight
