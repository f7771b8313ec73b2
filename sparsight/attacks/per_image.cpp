#include "sparsight/attacks/per_image.h"

#include <vector>

#include <ATen/ops/where.h>

namespace sparsight {

at::Tensor per_image(const at::Tensor& values, const at::Tensor& like) {
  std::vector<int64_t> sizes(static_cast<size_t>(like.dim()), 1);
  sizes[0] = values.size(0);
  const at::Tensor typed = values.scalar_type() == at::kBool ? values : values.to(like.scalar_type());
  return typed.view(sizes);
}

at::Tensor image_norms(const at::Tensor& delta, Norm norm) {
  const at::Tensor flat = delta.flatten(1).to(at::kDouble);
  if (norm == Norm::l1) return flat.abs().sum(1);
  return norm == Norm::linf ? flat.abs().amax(1) : flat.square().sum(1).sqrt();
}

at::Tensor choose_images(const at::Tensor& which, const at::Tensor& yes, const at::Tensor& no) {
  return at::where(per_image(which, yes), yes, no);
}

}  // namespace sparsight
