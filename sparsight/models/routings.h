// The routings of all MoE layers of a model as a value: collected over batches, and passed back to the model by image.
// Letters: moe/axes.md.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sparsight/models/model_output.h"

namespace sparsight {

// By layer, as in ModelInput::routings.
using Routings = std::map<std::string, Routing>;

// The fields needed to replay a routing: a hard one, and a soft one.
std::vector<std::pair<const char*, at::Tensor Routing::*>> choice_fields();
std::vector<std::pair<const char*, at::Tensor SoftRouting::*>> soft_fields();

// All routings of a forward pass, detached.
Routings to_routings(const ModelOutput& output);

// Concatenates the routings of several batches, in order.
class RoutingCollector {
 public:
  void add(const Routings& routings);
  // Raises Error where the routings of a layer differ in kind or sizes.
  Routings all() const;

 private:
  std::map<std::string, std::vector<Routing>> parts_;
};

// Selects routings by image.
class RoutingReplay {
 public:
  RoutingReplay() = default;  // none
  explicit RoutingReplay(Routings routings);

  // The routings of some of the images; empty if there are none. image: [B'] int64 positions in the layout. Raises
  // Error for positions beyond the routing's images.
  Routings of(const at::Tensor& image) const;

 private:
  struct Layer {
    Routing routing;
    at::Tensor order = {};            // [A] assignments sorted by image (stable)
    std::vector<int64_t> first = {};  // [images + 1] where each image begins in `order`
  };
  static Routing of(const Layer& layer, const at::Tensor& image);

  std::map<std::string, Layer> layers_;
};

}  // namespace sparsight
