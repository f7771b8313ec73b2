#include "sparsight/optim/sgd.h"

#include <ATen/ops/_fused_sgd.h>

namespace sparsight {

void SgdOptions::declare(OptionSet& set) {
  set.real("lr", &lr, {0, 1e6}, "base learning rate, scaled by the schedule");
  set.real("momentum", &momentum, {0, 1}, "momentum coefficient");
  set.flag("nesterov", &nesterov, "use Nesterov momentum");
  set.real("weight_decay", &weight_decay, {0, 1e6}, "L2 penalty added to the gradient");
}

Sgd::Sgd(const SgdOptions& options, std::vector<OptimizedParameter> parameters)
    : Optimizer(std::move(parameters)), options_(options), momentum_(add_state("momentum")) {}

void Sgd::update(const std::vector<size_t>& which, double lr) {
  const bool momentum = options_.momentum > 0, nesterov = options_.nesterov && momentum;
  at::_fused_sgd_(values(which), gradients(which), momentum ? states(momentum_, which) : std::vector<at::Tensor>{},
                  group_weight_decay(which, options_.weight_decay), options_.momentum, lr, /*dampening=*/0.0, nesterov,
                  /*maximize=*/false, /*is_first_step=*/false);
}

}  // namespace sparsight
