#include "sparsight/papers/register_figures.h"

#include "sparsight/core/nearest_name.h"
#include "sparsight/papers/gmoe/register_figures.h"
#include "sparsight/papers/mobile_vmoe/register_figures.h"
#include "sparsight/papers/pmoe/register_figures.h"
#include "sparsight/papers/robust_moe/register_figures.h"

namespace sparsight {

const std::vector<Figure>& figures() {
  static const std::vector<Figure> all = [] {
    std::vector<Figure> list;
    for (const auto& paper : {pmoe::figures, robust_moe::figures, gmoe::figures, mobile_vmoe::figures})
      for (Figure& figure : paper()) list.push_back(std::move(figure));
    return list;
  }();
  return all;
}

const Figure& find_figure(const std::string& name) { return entry_named(name, figures(), "figure"); }

}  // namespace sparsight
