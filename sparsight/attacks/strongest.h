// The strongest perturbation of each image over several runs of an attack.
#pragma once

#include <vector>

#include "sparsight/attacks/attack_batch.h"

namespace sparsight {

class Strongest {
 public:
  // correct: [B] bool, of the images as they are. Those that are misclassified stay as they are.
  Strongest(const at::Tensor& pixels, const at::Tensor& correct);

  // The result of a run on the images at `index` [n]: [n,...] points, [n] losses, [n] bool whether they are fooled. An
  // image that is already fooled keeps its point; one that is not takes a point that fools or has the largest loss so
  // far.
  void offer(const at::Tensor& index, const at::Tensor& points, const at::Tensor& loss, const at::Tensor& fooled);
  // The same where only points that fool count.
  void offer_fooled(const at::Tensor& index, const at::Tensor& points, const at::Tensor& fooled);

  std::vector<at::Tensor*> state() { return {&pixels_, &loss_, &robust_}; }  // for SavedLoop

  const at::Tensor& pixels() const { return pixels_; }  // [B,...]
  const at::Tensor& robust() const { return robust_; }  // [B] bool: not yet fooled

 private:
  at::Tensor pixels_, loss_, robust_;
};

}  // namespace sparsight
