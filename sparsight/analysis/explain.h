// Runs a model over images and collects what it did: predictions, expert load, classes by expert, routed patches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/analysis/explanation.h"
#include "sparsight/data/domainbed/cub_dg.h"
#include "sparsight/data/sample.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/routing_record.h"

namespace sparsight {

// An image to explain, read when it is needed.
struct ExplainItem {
  int64_t label = -1;            // -1 if unknown
  std::function<Sample()> read;  // the sample's own label is ignored
  int64_t domain = -1;           // -1 if unknown
};

struct ExplainOptions {
  int64_t examples = 12;  // how many images become pictures
  int64_t batch = 64;
  // From the dataset's DataInfo: the names of the samples' attributes, and the grid whose cells they number. For the
  // report of the experts that took these cells' patches.
  std::vector<std::string> attributes = {};
  std::vector<int64_t> cell_grid = {};
  std::vector<std::string> domains = {};  // names; with several, domains by expert are counted too
  // The visible parts of objects by Sample::id, in pixels of the sample's image, which `pixels` only scales. Empty:
  // none.
  CubDgKeypoints keypoints = {};
  // [K] the super-class of each class where routers are guided: adds router_accuracy to the layers. Empty: none is.
  std::vector<int64_t> super_class_of = {};
  bool sigmoid = false;                   // the probability of a class is its own sigmoid, not the softmax of all
  RoutingReplay replay = {};              // decisions about the items that replace the routers' own
  RoutingRecordWriter* record = nullptr;  // receives all decisions
};

// From a sample's image to the pixels that the model takes and that are shown: [C,H,W] fp32, 0 to 1.
using ImagePixels = std::function<at::Tensor(const at::Tensor& image)>;

// The model is called in evaluation mode, without gradients. Examples are spread over the classes. Classes by expert
// count the images with a label or, if none has one, all by their predicted class, without class information. Raises
// Error for an image that cannot be read.
Explanation explain_images(const Predictor& model, const std::vector<ExplainItem>& items, const ImagePixels& pixels,
                           const std::vector<std::string>& classes, const ExplainOptions& options = {});

// Indices of up to `count` items, taken from the classes in turn (items without label count as one class), ascending;
// those of a class are evenly spaced.
std::vector<size_t> spread_over_classes(const std::vector<ExplainItem>& items, size_t count);

}  // namespace sparsight
