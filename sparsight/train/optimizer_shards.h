// Which rank updates which parameters, where each keeps the optimiser's state of its own ones only (ZeRO, stage 1:
// Rajbhandari et al. 2020, arXiv:1910.02054). Every rank has the gradients of all parameters; after a step each
// receives the values that the others updated. An optimiser updates a parameter from its own gradient and state, so
// that no bit depends on who does it.
#pragma once

#include <vector>

#include "sparsight/dist/group.h"
#include "sparsight/optim/optimizer.h"

namespace sparsight {

class OptimizerShards {
 public:
  // Shares out the parameters, the largest first, each to the rank with the fewest numbers so far.
  OptimizerShards(dist::GroupPtr group, std::vector<OptimizedParameter> parameters);

  // Those that this rank updates.
  std::vector<OptimizedParameter> own() const;

  // Collective, after a step of the own ones: the values of the others, and of their averages where `averages`.
  void exchange(bool averages);

  // The optimisers' states of all ranks on rank 0, in the order of one process; on the others the own one. Collective.
  NamedTensors gather(const NamedTensors& own) const;
  // Those of `all` that belong to this rank's parameters, or to none.
  NamedTensors own_part(const NamedTensors& all) const;

 private:
  size_t find(const std::string& state) const;  // the parameter that a state belongs to, or none

  dist::GroupPtr group_;
  std::vector<OptimizedParameter> parameters_;
  std::vector<int64_t> owner_;  // rank, by parameter
};

}  // namespace sparsight
