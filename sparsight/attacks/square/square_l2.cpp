#include "sparsight/attacks/square/square_l2.h"

#include <algorithm>
#include <cstdlib>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/projection.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr int64_t kTiles = 5;  // of the start, in each direction

// The norm of each channel, [B,C,1,1].
at::Tensor channel_norms(const at::Tensor& delta) { return delta.square().sum({2, 3}, /*keepdim=*/true).sqrt(); }

at::Tensor unit(const at::Tensor& values) { return values / values.square().sum().sqrt(); }

// Falls from the centre: the sum of 1 / (k+1)^2 over the rings k from that of the pixel outwards. fp64 [rows,columns].
at::Tensor half_bump(int64_t rows, int64_t columns) {
  const int64_t rings = std::max(rows, columns) / 2 + 1;
  at::Tensor bump = at::empty({rows, columns}, at::kDouble);
  double* value = bump.mutable_data_ptr<double>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c, ++value) {
      *value = 0;
      for (int64_t k = std::max(std::abs(r - rows / 2), std::abs(c - columns / 2)); k < rings; ++k)
        *value += 1 / static_cast<double>((k + 1) * (k + 1));
    }
  return bump;
}

// A square window of the last two axes.
struct Window {
  int64_t row, column, side;
  at::Tensor of(const at::Tensor& x) const { return x.narrow(2, row, side).narrow(3, column, side); }
};

}  // namespace

at::Tensor square_bump(int64_t side, const at::Tensor& like) {
  const at::Tensor lower = -unit(half_bump(side - side / 2, side));
  if (side == 1) return lower.to(like.scalar_type());
  return unit(at::cat({unit(half_bump(side / 2, side)), lower})).to(like.scalar_type());
}

// [B,C,side,side].
at::Tensor SquareL2::signed_bump(const AttackBatch& batch, int64_t side, int64_t query) const {
  const at::Tensor& x = batch.pixels;
  const bool turned = context_.random->shared_signs(query, x, 1).item<double>() > 0;
  const at::Tensor bump = square_bump(side, x), signs = context_.random->image_signs(query, batch, x.size(1));
  return (turned ? bump.t() : bump) * signs.view({x.size(0), x.size(1), 1, 1});
}

at::Tensor SquareL2::scaled_to_epsilon(const AttackBatch& batch, const at::Tensor& delta) const {
  const at::Tensor factor = context_.threat.epsilon / (image_norms(delta, Norm::l2) + kNormGuard);
  return Projection(batch.pixels, context_.threat).to_pixels(batch.pixels + delta * per_image(factor, delta));
}

at::Tensor SquareL2::start(const AttackBatch& batch) {
  const at::Tensor& x = batch.pixels;
  const int64_t height = x.size(2), width = x.size(3), side = height / kTiles, margin = (height - side * kTiles) / 2;
  if (std::min(height, width) < kTiles)
    fail_usage("the square attack for l2 takes images of at least ", kTiles, " by ", kTiles, " pixels, got ", height,
               " by ", width);
  at::Tensor delta = at::zeros_like(x);
  int64_t tile = 0;
  for (int64_t row = margin; row + side <= height; row += side)
    for (int64_t column = margin; column + side <= width; column += side)
      Window{row, column, side}.of(delta).copy_(signed_bump(batch, side, --tile));
  return scaled_to_epsilon(batch, delta);
}

at::Tensor SquareL2::propose(const AttackBatch& batch, const at::Tensor& x, int64_t query) {
  const int64_t height = x.size(2), width = x.size(3);
  const int64_t odd = std::max<int64_t>(square_side(context_.initial_area, query, x), 3) | 1;
  const int64_t side = std::min({odd, height, width});
  const auto window = [&](int64_t slot) {
    const int64_t row = context_.random->below(query, slot, height - side);
    return Window{row, context_.random->below(query, slot + 1, width - side), side};
  };
  const Window to = window(0), from = window(2);
  at::Tensor delta = x - batch.pixels, mask = at::zeros_like(delta);
  to.of(mask).fill_(1);
  from.of(mask).fill_(1);
  const at::Tensor in_windows = channel_norms(delta * mask).square();
  const at::Tensor norm = per_image(image_norms(delta, Norm::l2), delta);
  const double radius = context_.threat.epsilon;
  const at::Tensor unused = (radius * radius - norm.square()).clamp_min(0) / static_cast<double>(x.size(1));
  const at::Tensor old = to.of(delta);
  const at::Tensor bump = signed_bump(batch, side, query) + old / (channel_norms(old) + kNormGuard);
  const at::Tensor placed = bump / (channel_norms(bump) + kNormGuard) * (unused + in_windows).sqrt();
  from.of(delta).zero_();
  to.of(delta).copy_(placed);
  return scaled_to_epsilon(batch, delta);
}

}  // namespace sparsight
