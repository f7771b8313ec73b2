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

int64_t head_outputs(int64_t classes) { return classes == 2 ? 1 : classes; }

at::Tensor two_class_logits(const at::Tensor& f) { return torch::cat({torch::zeros_like(f), f}, 1); }

}  // namespace sparsight
