// Projections onto what a threat model allows around given images: the ball and the box of valid pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// Where a norm is a divisor, AutoPGD adds kNormGuard to it and the other attacks do not: they leave an image without
// gradient where it is.
inline constexpr double kNormGuard = 1e-12;

class Projection {
 public:
  // x: [B,...], pixels in threat.range.
  Projection(const at::Tensor& x, const ThreatModel& threat, double norm_guard = 0);

  // v: [B,...]. linf: clips to [x - epsilon, x + epsilon]. l2: x + d * min(1, epsilon / ||d||), d = v - x. l1: the
  // closest point of the ball (l1_ball.h). In fp32 the bounds of linf and the points of l1 are rounded towards x, so
  // that no perturbation exceeds epsilon.
  at::Tensor to_ball(const at::Tensor& v) const;
  // Clips to threat.range.
  at::Tensor to_pixels(const at::Tensor& v) const;
  // First the ball, then the pixels. For l2 this is not the projection onto the intersection, but it lies in it. For l1
  // it is the projection onto the intersection: first the ball would leave much of it unused (Croce and Hein 2021).
  at::Tensor operator()(const at::Tensor& v) const;
  // (*this)(v + size * ascent_direction(gradient)), of the same bits; not for l1. For linf in one pass over memory: the
  // operations one after the other read and write the images a dozen times, which costs several percent of a gradient.
  at::Tensor step(const at::Tensor& v, const at::Tensor& gradient, double size) const;

 private:
  at::Tensor x_;                   // [B,...]
  mutable at::Tensor low_, high_;  // [B,...] the bounds of linf, where they are needed
  ThreatModel threat_;
  double norm_guard_;
};

// The direction of steepest ascent: sign(g) for linf, with sign(0) = 0, and g / ||g|| of each image for l2; l1 has
// sparse_ascent() (l1_ball.h). gradient: [B,...]. Without a guard an image with a gradient of 0 has the direction 0.
at::Tensor ascent_direction(const at::Tensor& gradient, Norm norm, double norm_guard = 0);

// The last projection of an attack: each image of `perturbed` that l2 or l1 in fp64 finds beyond epsilon, by the
// rounding of its pixels, is moved towards x until it no longer is. Other images keep their bits. perturbed, x:
// [B,...].
at::Tensor inside_ball(const at::Tensor& perturbed, const at::Tensor& x, const ThreatModel& threat);

}  // namespace sparsight
