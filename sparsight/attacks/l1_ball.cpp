#include "sparsight/attacks/l1_ball.h"

#include <algorithm>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/nextafter.h>
#include <ATen/ops/where.h>

#include "sparsight/attacks/per_image.h"

namespace sparsight {
namespace {

constexpr double kNoChange = 1e-12;         // times epsilon: a change that rounding alone leaves of a pixel is none
constexpr int64_t kValuesAtOnce = 1 << 21;  // whose sorted breakpoints are in memory together

// lambda >= 0 with sum_i min(max(length_i - lambda, 0), room_i) = radius for each row, 0 where the sum is no more than
// that without it. Coordinate i begins to shrink when lambda passes length_i - room_i and is 0 from length_i on, so the
// sum falls linearly between these 2 D breakpoints, by as much as coordinates shrink. length, room: [B,D] fp64, >= 0.
// Returns [B,1].
at::Tensor shrinkage(const at::Tensor& length, const at::Tensor& room, double radius) {
  const int64_t columns = length.size(1);
  const at::Tensor total = at::minimum(length, room).sum(1, /*keepdim=*/true);
  const auto [breakpoint, order] = at::cat({(length - room).clamp_min(0), length}, 1).sort(1);  // [B,2D]
  const at::Tensor shrinking = (1 - 2 * order.ge(columns).to(at::kDouble)).cumsum(1);  // how many, after each of them
  const at::Tensor gap = breakpoint.slice(1, 1) - breakpoint.slice(1, 0, -1);
  const at::Tensor sum = total - (shrinking.slice(1, 0, -1) * gap).cumsum(1);  // [B,2D-1] at the end of each gap
  const at::Tensor in_gap = (sum > radius).to(at::kLong).sum(1, true).clamp_max(2 * columns - 2);
  const at::Tensor found =
      breakpoint.gather(1, in_gap + 1) - (radius - sum.gather(1, in_gap)) / shrinking.gather(1, in_gap);
  return at::where(total > radius, found, 0.0).clamp_min(0);
}

// `exact`, fp64, in the type of x and rounded towards it.
at::Tensor rounded_towards(const at::Tensor& x, const at::Tensor& exact) {
  if (x.scalar_type() == at::kDouble) return exact;
  const at::Tensor rounded = exact.to(x.scalar_type()), centre = x.to(at::kDouble);
  const at::Tensor beyond = (rounded.to(at::kDouble) - centre).abs() > (exact - centre).abs();
  return at::where(beyond, at::nextafter(rounded, x), rounded);
}

// v, x: [B,D].
at::Tensor project_rows(const at::Tensor& v, const at::Tensor& x, double epsilon, const PixelRange& range) {
  const at::Tensor centre = x.to(at::kDouble), delta = v.to(at::kDouble) - centre, length = delta.abs();
  const at::Tensor room = at::where(delta > 0, range.high - centre, centre - range.low);
  const at::Tensor kept = at::minimum((length - shrinkage(length, room, epsilon)).clamp_min(0), room);
  const at::Tensor change = at::where(kept > kNoChange * epsilon, delta.sign() * kept, 0.0);
  return rounded_towards(x, (centre + change).clamp(range.low, range.high));
}

}  // namespace

at::Tensor project_l1(const at::Tensor& v, const at::Tensor& x, double epsilon, const PixelRange& range) {
  if (epsilon == 0 || v.numel() == 0) return x;
  const at::Tensor points = v.flatten(1), centres = x.flatten(1);
  const int64_t rows = std::max<int64_t>(1, kValuesAtOnce / points.size(1));
  std::vector<at::Tensor> projected;
  for (int64_t first = 0; first < points.size(0); first += rows)
    projected.push_back(
        project_rows(points.slice(0, first, first + rows), centres.slice(0, first, first + rows), epsilon, range));
  return at::cat(projected).view(v.sizes());
}

at::Tensor movable_gradient(const at::Tensor& gradient, const at::Tensor& v, const at::Tensor& x,
                            const PixelRange& range) {
  const at::Tensor up = at::minimum(v, x)<range.high, down = at::maximum(v, x)> range.low;
  const at::Tensor movable = ((gradient > 0) & up) | ((gradient < 0) & down);
  return at::where(movable, gradient, 0.0);
}

at::Tensor sparse_ascent(const at::Tensor& gradient, const at::Tensor& count) {
  const at::Tensor slope = gradient.flatten(1).abs();
  const int64_t most = std::min(count.max().item<int64_t>(), slope.size(1));
  const at::Tensor largest = std::get<0>(slope.topk(most, 1));
  const at::Tensor threshold = largest.gather(1, (count.clamp_max(most) - 1).unsqueeze(1));
  const at::Tensor chosen = (slope >= threshold) & (slope > 0);
  const at::Tensor share = 1 / chosen.sum(1).clamp_min(1).to(at::kDouble);
  const at::Tensor signs = at::where(chosen.view(gradient.sizes()), gradient.sign(), 0.0);
  return signs * per_image(share, signs);
}

}  // namespace sparsight
