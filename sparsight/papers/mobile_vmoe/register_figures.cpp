#include "sparsight/papers/mobile_vmoe/register_figures.h"

#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"

namespace sparsight::mobile_vmoe {

std::vector<Figure> figures() {
  return {sizes_figure(), experts_figure(), layers_figure(), choices_figure(), routing_figure(), lambda_figure()};
}

}  // namespace sparsight::mobile_vmoe
