// How sparse the steps of AutoPGD are within the l1 ball (Croce and Hein 2021, section 3): a step changes few pixels,
// at first a fifth of them, then at each check two thirds of those in which the best point differs from the image.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "sparsight/attacks/threat_model.h"

namespace sparsight {

// All is per image: [B,...] points and gradients, [B] numbers.
class SparseSteps {
 public:
  static constexpr double kInitialStep = 1;     // times epsilon; also the largest step
  static constexpr double kSmallestStep = 0.1;  // times epsilon
  static constexpr double kReduction = 1.5;     // divides steps at checks, and the number of pixels that they change

  // image: the one that is attacked, in `range`.
  SparseSteps(const at::Tensor& image, const PixelRange& range);

  // The step from x along the gradient, of l1 norm 1.
  // Differs from the paper: pixels that the image has at the edge of the range, and the step would push out of it, do
  // not count among those of the largest gradients. There they take a share of the step that the projection then
  // removes.
  at::Tensor direction(const at::Tensor& x, const at::Tensor& gradient) const;

  // A check. Returns [B] bool: whether `best` differs from the image in less than 95 % of the pixels in which the best
  // point did at the check before. Then steps begin again, from the best point and at their largest size.
  // Differs from the authors' code, whose rounding keeps two pixels two for ever: of two, one is left.
  at::Tensor check(const at::Tensor& best);

  std::vector<at::Tensor*> state() { return {&count_, &changed_before_}; }  // for SavedLoop

 private:
  at::Tensor image_;
  PixelRange range_;
  at::Tensor count_;           // [B] int64: pixels that a step changes
  at::Tensor changed_before_;  // [B] int64: in the best point at the check before; at first all
};

}  // namespace sparsight
