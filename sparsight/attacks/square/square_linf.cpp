#include "sparsight/attacks/square/square_linf.h"

#include <algorithm>

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/projection.h"

namespace sparsight {

at::Tensor SquareLinf::start(const AttackBatch& batch) {
  const at::Tensor& x = batch.pixels;
  const at::Tensor stripes =
      context_.random->image_signs(-1, batch, x.size(1) * x.size(3)).view({x.size(0), x.size(1), 1, x.size(3)});
  return Projection(x, context_.threat)(x + context_.threat.epsilon * stripes);
}

at::Tensor SquareLinf::propose(const AttackBatch& batch, const at::Tensor& x, int64_t query) {
  const int64_t height = x.size(2), width = x.size(3);
  const int64_t side = std::min({std::max<int64_t>(square_side(context_.initial_area, query, x), 1), height, width});
  const int64_t row = context_.random->below(query, 0, height - side);
  const int64_t column = context_.random->below(query, 1, width - side);
  const at::Tensor signs = context_.random->shared_signs(query, x, x.size(1)).view({x.size(1), 1, 1});
  at::Tensor moved = x.clone();
  moved.narrow(2, row, side).narrow(3, column, side).add_(2 * context_.threat.epsilon * signs);
  return Projection(batch.pixels, context_.threat)(moved);
}

}  // namespace sparsight
