#pragma once

#include <ATen/core/Tensor.h>

namespace sparsight::ref {

double sum_of_squares(const at::Tensor& tensor);

}  // namespace sparsight::ref
