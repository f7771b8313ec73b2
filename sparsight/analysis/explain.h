// Runs a model over images and gathers who did what: predictions, expert load, classes by expert, routed patches.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sparsight/analysis/explanation.h"
#include "sparsight/data/sample.h"
#include "sparsight/models/image_model.h"
#include "sparsight/models/routings.h"

namespace sparsight {

// An image to look at, read when its turn comes.
struct ExplainItem {
  int64_t label = -1;            // -1 where unknown
  std::function<Sample()> read;  // its label does not count
};

struct ExplainOptions {
  int64_t examples = 12;  // how many images become pictures
  int64_t batch = 64;
  // Of the dataset, as in DataInfo: what attributes of samples are, and the grid that those count that name cells. For
  // the report of the experts that took these cells' patches.
  std::vector<std::string> attributes = {};
  std::vector<int64_t> cell_grid = {};
  RoutingReplay replay = {};              // decisions about the items that take the place of the routers' own
  RoutingCollector* decisions = nullptr;  // receives all decisions
};

// From a sample's image to the pixels that the model takes and people see: [C,H,W] fp32, 0 to 1.
using ImagePixels = std::function<at::Tensor(const at::Tensor& image)>;

// The model runs in evaluation mode, without gradients. Examples are spread over the classes. Classes by expert count
// the images with a label or, where none has one, all by their predicted class, without class information. An image
// that cannot be read raises Error.
Explanation explain_images(ImageModel& model, const std::vector<ExplainItem>& items, const ImagePixels& pixels,
                           const std::vector<std::string>& classes, const ExplainOptions& options = {});

// The positions of up to `count` items, ascending: as many of each class (all items without label count as one) as of
// the others, or all where it has fewer; those of a class evenly spaced.
std::vector<size_t> spread_over_classes(const std::vector<ExplainItem>& items, size_t count);

}  // namespace sparsight
