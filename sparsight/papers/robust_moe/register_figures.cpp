#include "sparsight/papers/robust_moe/register_figures.h"

#include "sparsight/papers/robust_moe/figures/theory_figures.h"

namespace sparsight::robust_moe {

std::vector<Figure> figures() {
  return {
      gradient_bound_figure(), router_margin_figure(),    router_radius_figure(),   top1_jump_figure(),
      two_experts_figure(),    tilted_subspaces_figure(), random_bounds_figure(),   printed_definition_figure(),
      equal_spectra_figure(),  root_of_samples_figure(),  root_of_experts_figure(), split_regimes_figure(),
  };
}

}  // namespace sparsight::robust_moe
