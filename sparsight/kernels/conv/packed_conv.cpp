#include "sparsight/kernels/conv/packed_conv.h"

#include <algorithm>
#include <vector>

#include "sparsight/kernels/conv/conv_task.h"
#include "sparsight/kernels/workspace.h"

namespace sparsight::cpu {
namespace {

constexpr int64_t kConvDepth = kBlock;  // of a part, at most: a panel stays in L1

// Each thread has one.
struct ConvSpace {
  Workspace input;
  std::vector<const float*> a;
  std::vector<int64_t> c_rows;
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

// The positions of a part of the output, and the input under them: its padded copy or, for a kernel of 1 without a
// norm, the map itself.
struct Positions {
  const ConvGeometry& g;
  const ConvPart& part;
  int64_t channels, outputs;
  const float* input = nullptr;
  int64_t image_floats = 0, row_floats = 0;

  Range rows() const { return {part.first_row, part.first_row + part.rows}; }
  Range columns() const { return {0, g.out_width}; }

  // Calls body(first input, output), where output counts floats from the first of the part.
  template <class Body>
  void each(Range rows, Range columns, const Body& body) const {
    for (int64_t image = 0; image < part.images; ++image)
      for (int64_t row = rows.first - part.first_row; row < rows.last - part.first_row; ++row) {
        const float* const a = input + image * image_floats + row * g.stride * row_floats;
        const int64_t c = (image * g.out_height + row) * g.out_width;
        for (int64_t column = columns.first; column < columns.last; ++column)
          body(a + column * g.stride * channels, (c + column) * outputs);
      }
  }
};

void read_input(const ConvMaps& maps, Workspace& copy, Positions& p) {
  const ConvGeometry& g = p.g;
  const int64_t map_row = g.width * p.channels, map_floats = g.height * map_row;
  const int64_t first_row = p.part.first_row * g.stride - g.top;
  const float* const map = maps.x + p.part.first_image * map_floats;
  if (g.kernel == 1 && !maps.scale) {
    p.input = map + first_row * map_row, p.image_floats = map_floats, p.row_floats = map_row;
    return;
  }
  const int64_t rows = (p.part.rows - 1) * g.stride + g.kernel, width = (g.out_width - 1) * g.stride + g.kernel;
  p.row_floats = width * p.channels, p.image_floats = rows * p.row_floats;
  float* const to = copy.floats(p.part.images * p.image_floats);
  for (int64_t image = 0; image < p.part.images; ++image)
    for (int64_t row = 0; row < rows; ++row)
      fill_row(maps, g, map + image * map_floats, first_row + row, width, p.channels,
               to + image * p.image_floats + row * p.row_floats);
  p.input = to;
}

// What the kernel does in its first and last part, for convolutions of which that part does not reach all outputs.
void start_from_bias(const ConvProduct& p, const Positions& positions) {
  positions.each(positions.rows(), positions.columns(), [&](const float*, int64_t c) {
    for (int64_t j = 0; j < p.n; ++j) p.c[c + j] = p.residual ? p.residual[c + j] + p.bias[j] : p.bias[j];
  });
}
void apply_relu(const ConvProduct& p, const Positions& positions) {
  positions.each(positions.rows(), positions.columns(), [&](const float*, int64_t c) {
    for (int64_t j = c; j < c + p.n; ++j) p.c[j] = p.c[j] < 0 ? 0.0f : p.c[j];  // NaN stays
  });
}

}  // namespace

PackedConv::PackedConv(const float* weight, const float* bias, int64_t inputs, int64_t outputs, int64_t kernel,
                       WeightType type)
    : inputs_(inputs),
      depth_(depth_parts(kernel, inputs, kConvDepth)),
      panels_(packed_patches(weight, bias, inputs, outputs, kernel, type)) {}

PackedConv::PackedConv(PackedLinear panels, int64_t kernel)
    : inputs_(panels.inputs() / (kernel * kernel)),
      depth_(depth_parts(kernel, inputs_, kConvDepth)),
      panels_(std::move(panels)) {}

void PackedConv::run(const ConvMaps& maps, const ConvGeometry& g, const ConvPart& part) const {
  ConvSpace& space = conv_space();
  Positions positions{g, part, inputs_, outputs()};
  read_input(maps, space.input, positions);
  const Range all_rows = positions.rows(), all_columns = positions.columns();
  const int64_t first = (part.first_image * g.out_height + part.first_row) * g.out_width * outputs() + part.first;
  ConvProduct p;
  p.n = part.count, p.c = maps.y + first, p.residual = maps.residual ? maps.residual + first : nullptr;
  p.run_stride = positions.row_floats;
  for (const DepthPart& depth : depth_) {
    const Range rows = reached(depth.rows, g.stride, g.top, g.height, all_rows),
                columns = reached(depth.taps, g.stride, g.left, g.width, all_columns);
    const bool everywhere = rows == all_rows && columns == all_columns;
    const bool starts = &depth == &depth_.front(), ends = &depth == &depth_.back();
    const int64_t tap = depth.rows.first * g.kernel + depth.taps.first, channel = depth.channels.first;
    p.runs = depth.rows.size(), p.run = depth.taps.size() * depth.channels.size();
    const Gemm packed = panels_.gemm(part.first, part.count, tap * inputs_ + channel, p.runs * p.run);
    p.b = packed.b, p.b_type = packed.b_type, p.b_panel = packed.b_panel_rows * kPanelColumns, p.bias = packed.bias;
    p.first = starts && everywhere, p.relu = maps.relu && ends && everywhere;
    if (starts && !everywhere) start_from_bias(p, positions);

    p.m = part.images * rows.size() * columns.size();
    space.a.resize(static_cast<size_t>(p.m)), space.c_rows.resize(space.a.size());
    const float** next_a = space.a.data();
    int64_t* next_c = space.c_rows.data();
    const int64_t offset = depth.rows.first * positions.row_floats + depth.taps.first * inputs_ + channel;
    positions.each(rows, columns, [&](const float* a, int64_t c) { *next_a++ = a + offset, *next_c++ = c; });
    p.a = space.a.data(), p.c_rows = space.c_rows.data();
    kernels().convolve(p);

    if (maps.relu && ends && !everywhere) apply_relu(p, positions);
  }
}

}  // namespace sparsight::cpu
