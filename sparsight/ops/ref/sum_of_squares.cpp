#include "sparsight/ops/ref/sum_of_squares.h"

namespace sparsight::ref {

double sum_of_squares(const at::Tensor& tensor) {
  return tensor.detach().to(at::kDouble).square().sum().item<double>();
}

}  // namespace sparsight::ref
