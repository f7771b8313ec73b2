#include "sparsight/reproduce/pmoe/theory_figures.h"

namespace sparsight {

std::vector<Figure> theory_figures() {
  std::vector<Figure> figures = {router_mean_figure(),      router_start_figure(), router_spread_figure(),
                                 router_rates_figure(),     value_bounds_figure(), activation_stability_figure(),
                                 large_gradients_figure(),  descent_figure(),      assumption_figure(),
                                 linear_classifier_figure()};
  for (Figure& figure : sample_figures()) figures.push_back(std::move(figure));
  figures.push_back(spurious_figure());
  return figures;
}

}  // namespace sparsight
