#include "sparsight/ops/cpu/packed_conv.h"

#include <algorithm>
#include <vector>

#include "sparsight/ops/cpu/conv_task.h"
#include "sparsight/ops/cpu/workspace.h"

namespace sparsight::cpu {
namespace {

// Of a thread.
struct ConvSpace {
  Workspace strip;
  std::vector<const float*> rows;
};
ConvSpace& conv_space() {
  thread_local ConvSpace scratch;
  return scratch;
}

PackedLinear packed_patches(const float* weight, const float* bias, int64_t inputs, int64_t outputs, int64_t kernel,
                            WeightType type) {
  const int64_t positions = kernel * kernel, depth = positions * inputs;
  std::vector<float> turned(static_cast<size_t>(outputs * depth));
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t c = 0; c < inputs; ++c)
      for (int64_t p = 0; p < positions; ++p)
        turned[static_cast<size_t>(o * depth + p * inputs + c)] = weight[(o * inputs + c) * positions + p];
  return {turned.data(), bias, depth, outputs, type == WeightType::fp32 ? type : WeightType::bf16, /*together=*/1};
}

// Rows of the padded input under a part of the output: [images, rows, width, I].
struct Strip {
  int64_t first_row = 0, rows = 0, width = 0;
};

// One row of the padded input, from row `y` of the map `x`.
void fill_row(const ConvMaps& maps, const ConvGeometry& g, const float* x, int64_t y, int64_t width, int64_t channels,
              float* to) {
  if (y < 0 || y >= g.height) return void(std::fill_n(to, width * channels, 0.0f));
  const int64_t inside = std::min(g.width, width - g.left), right = width - g.left - inside;
  const float* from = x + y * g.width * channels;
  std::fill_n(to, g.left * channels, 0.0f);
  to += g.left * channels;
  if (maps.scale)
    kernels().scale_shift({from, maps.scale, maps.shift, nullptr, to, inside, channels, channels, /*relu=*/true});
  else
    std::copy_n(from, inside * channels, to);
  std::fill_n(to + inside * channels, right * channels, 0.0f);
}

}  // namespace

PackedConv::PackedConv(const float* weight, const float* bias, int64_t inputs, int64_t outputs, int64_t kernel,
                       WeightType type)
    : inputs_(inputs), panels_(packed_patches(weight, bias, inputs, outputs, kernel, type)) {}

void PackedConv::run(const ConvMaps& maps, const ConvGeometry& g, const ConvPart& part) const {
  ConvSpace& space = conv_space();
  const int64_t channels = inputs_, outputs = this->outputs();
  Strip strip{part.first_row * g.stride - g.top, (part.rows - 1) * g.stride + g.kernel,
              (g.out_width - 1) * g.stride + g.kernel};
  const float* from = maps.x + part.first_image * g.height * g.width * channels;
  int64_t image_floats = g.height * g.width * channels;
  if (g.kernel == 1 && !maps.scale) {  // rows of the map itself
    from += strip.first_row * g.width * channels;
    strip.width = g.width;
  } else {
    image_floats = strip.rows * strip.width * channels;
    float* const to = space.strip.floats(part.images * image_floats);
    for (int64_t image = 0; image < part.images; ++image)
      for (int64_t r = 0; r < strip.rows; ++r)
        fill_row(maps, g, from + image * g.height * g.width * channels, strip.first_row + r, strip.width, channels,
                 to + image * image_floats + r * strip.width * channels);
    from = to;
  }
  space.rows.clear();
  for (int64_t image = 0; image < part.images; ++image)
    for (int64_t r = 0; r < part.rows; ++r)
      for (int64_t c = 0; c < g.out_width; ++c)
        space.rows.push_back(from + image * image_floats + (r * strip.width + c) * g.stride * channels);
  const Gemm packed = panels_.gemm(part.first, part.count);
  const int64_t first = ((part.first_image * g.out_height + part.first_row) * g.out_width) * outputs + part.first;
  ConvProduct p;
  p.m = part.images * part.rows * g.out_width, p.n = part.count;
  p.rows = space.rows.data();
  p.runs = g.kernel, p.run = g.kernel * channels, p.run_stride = strip.width * channels;
  p.b = packed.b, p.b_type = packed.b_type, p.bias = packed.bias;
  p.residual = maps.residual ? maps.residual + first : nullptr;
  p.c = maps.y + first, p.c_ld = outputs;
  p.relu = maps.relu;
  kernels().convolve(p);
}

}  // namespace sparsight::cpu
