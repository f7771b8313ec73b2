#include "sparsight/attacks/fab/hyperplane.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace sparsight {
namespace {

// The length of each coordinate's move, [B,D], where the steepest ones move first, as far as `room` [B,D] lets them: of
// all moves that gain as much, that of the least sum. weight: [B,D], |w|; wanted: [B,1].
at::Tensor steepest_first(const at::Tensor& weight, const at::Tensor& room, const at::Tensor& wanted) {
  const auto [steepest, order] = weight.sort(1, /*descending=*/true);
  const at::Tensor space = room.gather(1, order), gain = steepest * space, before = gain.cumsum(1) - gain;
  const at::Tensor needed = at::minimum((wanted - before).clamp_min(0) / steepest, space);
  return at::zeros_like(weight).scatter(1, order, at::where(steepest > 0, needed, 0.0));
}

}  // namespace

// Coordinate i moves in the direction that lowers |excess|, at the speed v_i (1 for linf, |w_i| for l2), until it meets
// the box after the length u_i: after the time s it has moved by min(s v_i, u_i), and the excess is lower by
// f(s) = sum_i |w_i| min(s v_i, u_i). f is concave and linear between the times u_i / v_i, so f(s) = |excess| is solved
// in the interval between two of them. For l1 coordinates move one after the other.
at::Tensor move_to_hyperplane(const at::Tensor& x, const at::Tensor& w, const at::Tensor& excess, Norm norm,
                              const PixelRange& range) {
  const at::Tensor wanted = excess.abs().unsqueeze(1);                    // [B,1]
  const at::Tensor direction = -(w.sign() * excess.sign().unsqueeze(1));  // [B,D]
  const at::Tensor room = at::where(direction > 0, range.high - x, x - range.low);
  const at::Tensor weight = w.abs(), moves = weight > 0;
  if (norm == Norm::l1) return direction * steepest_first(weight, room, wanted);
  const at::Tensor speed = norm == Norm::linf ? at::ones_like(w) : weight;
  const at::Tensor never = at::full_like(w, std::numeric_limits<double>::infinity());
  const auto [time, order] = at::where(moves, room / speed, never).sort(1);
  const at::Tensor gain = at::where(moves, weight * room, at::zeros_like(w)).gather(1, order);
  const at::Tensor slope = at::where(moves, weight * speed, at::zeros_like(w)).gather(1, order);
  // Before the n-th stop: what the n stopped coordinates gave, and the slope of those that still move.
  const at::Tensor stopped = gain.cumsum(1) - gain, running = slope.flip({1}).cumsum(1).flip({1});
  const at::Tensor at_stop = stopped + at::where(running > 0, running * time, at::zeros_like(time));  // f(time)
  const at::Tensor before = (at_stop < wanted).to(at::kLong).sum(1, true);  // stops that come too early
  const at::Tensor reached = before < x.size(1);
  const at::Tensor interval = before.clamp_max(x.size(1) - 1);
  const at::Tensor solved = (wanted - stopped.gather(1, interval)) / running.gather(1, interval);
  const at::Tensor length = at::where(reached, at::minimum(solved.clamp_min(0) * speed, room), room);
  return at::where(moves, direction * length, at::zeros_like(w));
}

}  // namespace sparsight
