// The decisions of all routers of a model as a value: gathered over batches, and given back to the model by image.
// Letters: moe/axes.md.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/models/model_output.h"

namespace sparsight {

// By layer, as ModelInput::routings.
using Routings = std::map<std::string, Routing>;

// The fields of a routing that replaying it needs: those of one that chose, and those of one that mixes.
std::vector<std::pair<const char*, at::Tensor Routing::*>> choice_fields();
std::vector<std::pair<const char*, at::Tensor SoftRouting::*>> soft_fields();

// All decisions of a pass, detached.
Routings routings_of(const ModelOutput& output);

// Gathers the decisions of several passes about images that follow each other.
class RoutingCollector {
 public:
  void add(const Routings& routings);
  // Raises Error where the decisions of a layer are not of the same kind and sizes.
  Routings all() const;

 private:
  std::map<std::string, std::vector<Routing>> parts_;
};

// Takes decisions apart by image.
class RoutingReplay {
 public:
  RoutingReplay() = default;  // none
  explicit RoutingReplay(Routings routings);

  // Decisions about some of the images, image: [B'] int64 positions in the layout; none where there are none. Raises
  // Error for positions beyond the routing's images.
  Routings of(const at::Tensor& image) const;

 private:
  struct Layer {
    Routing routing;
    at::Tensor order;            // [A] assignments by image, in their order
    std::vector<int64_t> first;  // [images + 1] of each image in `order`
  };
  static Routing of(const Layer& layer, const at::Tensor& image);

  std::map<std::string, Layer> layers_;
};

}  // namespace sparsight
