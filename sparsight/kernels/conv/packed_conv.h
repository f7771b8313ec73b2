// A convolution packed for inference: its weights in panels (packed_linear.h) as deep as a patch, which is read in
// place from a padded copy of some rows of the map; products with its zeros are left out (conv_depth.h). Maps are
// channels last. No torch types. Letters: B images, H x W of a map, I and O channels.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsight/kernels/conv/conv_depth.h"
#include "sparsight/kernels/gemm/packed_linear.h"

namespace sparsight::cpu {

// top, left: zeros above and left of the map; below and right as many as the output needs.
struct ConvGeometry {
  int64_t kernel = 1, stride = 1;
  int64_t height = 0, width = 0;          // of the input
  int64_t out_height = 0, out_width = 0;  // of the output
  int64_t top = 0, left = 0;
};

// A part of a convolution that one thread computes: rows first_row .. + rows of the output of each of `images` images
// from first_image on, and channels first .. + count.
struct ConvPart {
  int64_t first_image = 0, images = 0;
  int64_t first_row = 0, rows = 0;  // several images: all rows
  int64_t first = 0, count = 0;     // first: a multiple of kPanelColumns
};

// The maps of all images. scale, shift: [I] or null; with them the input is max(0, scale x + shift), and zeros around
// it stay zeros. residual: [B,H',W',O] or null, added to the output; may be `y`.
struct ConvMaps {
  const float* x = nullptr;  // [B,H,W,I]
  const float *scale = nullptr, *shift = nullptr;
  const float* residual = nullptr;
  float* y = nullptr;  // [B,H',W',O]
  bool relu = false;   // of the output
};

class PackedConv {
 public:
  PackedConv() = default;
  // weight: [O,I,K,K] as in torch, bias: [O]; both are copied. int8 is stored as bf16.
  PackedConv(const float* weight, const float* bias, int64_t inputs, int64_t outputs, int64_t kernel, WeightType type);

  // panels: those of such a weight as [O,K K I], inputs in the order of a patch (row, column, channel), stored one row
  // at a time.
  PackedConv(PackedLinear panels, int64_t kernel);

  int64_t inputs() const { return inputs_; }
  const PackedLinear& panels() const { return panels_; }
  int64_t outputs() const { return panels_.outputs(); }
  WeightType type() const { return panels_.type(); }
  int64_t bytes() const { return panels_.bytes(); }

  // Uses scratch of the calling thread. The bits of an element do not depend on the part that it is in.
  void run(const ConvMaps& maps, const ConvGeometry& geometry, const ConvPart& part) const;

 private:
  int64_t inputs_ = 0;
  std::vector<DepthPart> depth_;
  PackedLinear panels_;  // inputs in the order of a patch: row, column, channel
};

}  // namespace sparsight::cpu
