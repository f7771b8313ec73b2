#include "sparsight/reproduce/register_figures.h"

#include "sparsight/core/nearest_name.h"
#include "sparsight/reproduce/pmoe/figures.h"
#include "sparsight/reproduce/pmoe/theory_figures.h"
#include "sparsight/reproduce/pmoe/wrn_figures.h"

namespace sparsight {

const std::vector<Figure>& figures() {
  static const std::vector<Figure> all = [] {
    std::vector<Figure> list = {
        pmoe_fig3(),  pmoe_fig4(),  pmoe_fig4_code(), pmoe_fig5(),   pmoe_fig6(),   pmoe_fig7(),
        pmoe_fig8(),  pmoe_fig9(),  pmoe_fig10(),     pmoe_fig11(),  pmoe_fig12(),  pmoe_fig13(),
        pmoe_fig14(), pmoe_fig15(), pmoe_fig16(),     pmoe_table1(), pmoe_table2(), pmoe_bounds_table(),
    };
    for (Figure& figure : theory_figures()) list.push_back(std::move(figure));
    return list;
  }();
  return all;
}

const Figure& find_figure(const std::string& name) { return entry_named(name, figures(), "figure"); }

}  // namespace sparsight
