#include "sparsight/papers/mobile_vmoe/figures/paper_sizes.h"

namespace sparsight::mobile_vmoe {

const std::vector<PaperSize>& paper_sizes() {
  static const std::vector<PaperSize> sizes{
      {"12x384", 2297, 71.88, 74.23}, {"9x384", 1752, 69.94, 72.47}, {"6x384", 1207, 63.21, 66.91},
      {"12x192", 618, 59.51, 62.90},  {"9x192", 478, 56.50, 59.52},  {"6x192", 338, 51.18, 55.69},
      {"12x96", 176, 53.79, 55.39},   {"9x96", 140, 51.27, 52.99},   {"6x96", 103, 46.54, 50.28},
      {"12x64", 88, 42.90, 46.07},    {"9x64", 71, 40.46, 43.95},    {"6x64", 54, 36.64, 41.30}};
  return sizes;
}

}  // namespace sparsight::mobile_vmoe
