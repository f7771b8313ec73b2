// Antialiased resizing; that of byte images is Pillow's (engine/resize_bytes.h).
#pragma once

#include "sparsight/data/transforms/transform_op.h"

namespace sparsight {

struct ResizeOptions {
  std::vector<int64_t> size;
  std::string filter = "bilinear";
  void declare(OptionSet& set);
};

// size: one number for the shorter side (the aspect ratio is kept), or [height, width]. [0] leaves the image as it is;
// training replaces it by what fits the data (fit_to_data.h).
TransformOp make_resize(const ResizeOptions& options);

// image: [C,H,W] of any type -> [C,height,width]. filter: "bilinear" or "bicubic".
at::Tensor resize_image(const at::Tensor& image, int64_t height, int64_t width, const std::string& filter);

// "bilinear", "bicubic"
const std::vector<std::string>& resize_filters();

}  // namespace sparsight
