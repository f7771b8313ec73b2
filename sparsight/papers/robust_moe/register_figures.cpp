#include "sparsight/papers/robust_moe/register_figures.h"

#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/papers/robust_moe/figures/theory_figures.h"

namespace sparsight::robust_moe {

std::vector<Figure> figures() {
  std::vector<Figure> all = {
      gradient_bound_figure(), router_margin_figure(),    router_radius_figure(),   top1_jump_figure(),
      two_experts_figure(),    tilted_subspaces_figure(), random_bounds_figure(),   printed_definition_figure(),
      equal_spectra_figure(),  root_of_samples_figure(),  root_of_experts_figure(), split_regimes_figure(),
      generated_task_figure(),
  };
  for (const VisionData data : {VisionData::cifar100, VisionData::cifar10, VisionData::mnist})
    for (Figure (*make)(VisionData) : {error_figure, routing_figure, auxiliary_figure, expert_number_figure,
                                       adaptive_error_figure, adaptive_routing_figure, error_cost_figure, sweep_figure,
                                       transfer_figure, batch_damage_figure, attacked_parts_figure})
      all.push_back(make(data));
  return all;
}

}  // namespace sparsight::robust_moe
