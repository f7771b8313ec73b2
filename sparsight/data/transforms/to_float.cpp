#include "sparsight/data/transforms/to_float.h"

namespace sparsight {

at::Tensor to_float(const at::Tensor& image) {
  return image.scalar_type() == at::kFloat ? image : image.to(at::kFloat).mul_(1.0 / 255);
}

}  // namespace sparsight
