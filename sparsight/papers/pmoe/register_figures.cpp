#include "sparsight/papers/pmoe/register_figures.h"

#include "sparsight/papers/pmoe/figures/figures.h"
#include "sparsight/papers/pmoe/figures/theory_figures.h"
#include "sparsight/papers/pmoe/figures/wrn_figures.h"

namespace sparsight::pmoe {

std::vector<Figure> figures() {
  std::vector<Figure> list = {
      fig3(),
      fig4(),
      fig4_code(),
      fig5(),
      fig6(),
      fig7(),
      fig8(),
      fig9(),
      router_samples_figure(),
      fig10(),
      fig11(),
      fig12(),
      fig13(),
      fig14(),
      fig15(),
      fig16(),
      table1(),
      table2(),
      bounds_table(),
      router_mean_figure(),
      router_start_figure(),
      router_spread_figure(),
      router_rates_figure(),
      value_bounds_figure(),
      activation_stability_figure(),
      large_gradients_figure(),
      descent_figure(),
      assumption_figure(),
      linear_classifier_figure(),
  };
  for (Figure& figure : sample_figures()) list.push_back(std::move(figure));
  list.push_back(spurious_figure());
  return list;
}

}  // namespace sparsight::pmoe
