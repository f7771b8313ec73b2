#include "sparsight/attacks/strongest.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>

#include "sparsight/attacks/per_image.h"

namespace sparsight {

Strongest::Strongest(const at::Tensor& pixels, const at::Tensor& correct)
    : pixels_(pixels),
      loss_(at::full_like(correct, -std::numeric_limits<double>::infinity(), at::kDouble)),
      robust_(correct) {}

void Strongest::offer(const at::Tensor& index, const at::Tensor& points, const at::Tensor& loss,
                      const at::Tensor& fooled) {
  const at::Tensor wide = loss.to(at::kDouble), before = loss_.index_select(0, index);
  const at::Tensor robust = robust_.index_select(0, index), taken = robust & (fooled | (wide > before));
  pixels_ = pixels_.index_copy(0, index, choose_images(taken, points, pixels_.index_select(0, index)));
  loss_ = loss_.index_copy(0, index, choose_images(taken, wide, before));
  robust_ = robust_.index_copy(0, index, robust & ~fooled);
}

void Strongest::offer_fooled(const at::Tensor& index, const at::Tensor& points, const at::Tensor& fooled) {
  offer(index, points, at::full_like(fooled, -std::numeric_limits<double>::infinity(), at::kDouble), fooled);
}

}  // namespace sparsight
