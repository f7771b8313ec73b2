// What an attack does to the routing of each MoE layer, added up over batches: how much of it changes, against the
// change of random choices, and how evenly the experts are used before and after (Puigcerver et al. 2022, section 4.3).
// Letters: moe/axes.md.
#pragma once

#include "sparsight/analysis/routing_change.h"
#include "sparsight/core/options.h"

namespace sparsight {

class AttackedRouting {
 public:
  // The routings of the same images as they are and attacked, in forward order; soft ones, which choose no experts, are
  // left out. moved: [B] bool, the images that the attack changed; undefined: not known. Raises Error unless both have
  // the same layers, in each call the same ones.
  void add(const std::vector<Routing>& clean, const std::vector<Routing>& attacked, const at::Tensor& moved = {});

  bool empty() const { return layers_.empty(); }

  // One object for each layer, in forward order; what is not known is null:
  //   layer, experts, per_token (null where it varies), images (that count)
  //   change (1 - intersection over union of a token's experts after capacity, mean over tokens of an image, then over
  //   images), change_moved (over the moved images), change_chosen (before capacity), change_public (as the authors'
  //   code counts tokens dropped twice)
  //   chance (change of independent uniform choices), of_chance (change / chance; null where chance is 0)
  //   load [E] (chosen assignments), entropy (of their shares, / ln E), entropy_nats, load_cv2, importance_cv2, dropped
  //   and the same with attacked_ in front
  Json layers() const;

 private:
  struct Layer {
    LayerChange change;
    RoutingChange moved, published;
    std::vector<Routing> clean, attacked;
  };
  std::vector<Layer> layers_;
};

}  // namespace sparsight
