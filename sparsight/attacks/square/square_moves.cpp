#include "sparsight/attacks/square/square_moves.h"

#include <cmath>

namespace sparsight {

double square_area(double initial, int64_t query) {
  for (const int64_t passed : {10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000})
    if (query > passed) initial /= 2;
  return initial;
}

int64_t square_side(double initial, int64_t query, const at::Tensor& x) {
  return std::lrint(std::sqrt(square_area(initial, query) * static_cast<double>(x.size(2) * x.size(3))));
}

}  // namespace sparsight
