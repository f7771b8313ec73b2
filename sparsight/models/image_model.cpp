#include "sparsight/models/image_model.h"

#include "sparsight/core/error.h"

namespace sparsight {

void check_images(const at::Tensor& images, const ImageShape& shape) {
  if (images.dim() == 4 && images.size(1) == shape.channels && images.size(2) == shape.height &&
      images.size(3) == shape.width)
    return;
  fail("the model takes images of shape [B, ", shape.channels, ", ", shape.height, ", ", shape.width, "], got ",
       images.sizes(), "; resize them with the [transforms] section");
}

at::Tensor as_logits(const at::Tensor& head) {
  return head.scalar_type() == torch::kDouble ? head : head.to(torch::kFloat);
}

}  // namespace sparsight
