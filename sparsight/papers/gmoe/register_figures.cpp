#include "sparsight/papers/gmoe/register_figures.h"

#include "sparsight/papers/gmoe/figures/image_figures.h"
#include "sparsight/papers/gmoe/figures/protocol_figures.h"
#include "sparsight/papers/gmoe/figures/theory_figures.h"

namespace sparsight::gmoe {

std::vector<Figure> figures() {
  return {aligned_pooling_figure(), branch_experts_figure(), module_alignment_figure(), sample_complexity_figure(),
          rotated_mnist_figure(),   colored_mnist_figure(),  router_ablation_figure(),  pacs_figure(),
          example1_figure(),        frequency_figure()};
}

}  // namespace sparsight::gmoe
