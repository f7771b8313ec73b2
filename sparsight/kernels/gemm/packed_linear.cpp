#include "sparsight/kernels/gemm/packed_linear.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

namespace sparsight::cpu {
namespace {

int64_t rounded(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);  // to nearest, ties to even
}

// Calls store(index in the panels, output, input) for every weight.
template <class Store>
void for_weights(int64_t inputs, int64_t outputs, int64_t together, const Store& store) {
  const int64_t rows = rounded(inputs, together);
  for (int64_t j = 0; j < outputs; ++j) {
    const int64_t panel = j / kPanelColumns * rows, column = j % kPanelColumns;
    for (int64_t l = 0; l < inputs; ++l)
      store((panel + l / together * together) * kPanelColumns + column * together + l % together, j, l);
  }
}

// max|w| / 127 of each output; NaN where a weight is not finite.
std::vector<float> scales(const float* weight, int64_t inputs, int64_t outputs) {
  std::vector<float> all(static_cast<size_t>(outputs));
  for (int64_t j = 0; j < outputs; ++j) {
    float most = 0;
    bool finite = true;
    for (int64_t l = 0; l < inputs; ++l) {
      most = std::max(most, std::abs(weight[j * inputs + l]));
      finite = finite && std::isfinite(weight[j * inputs + l]);
    }
    all[static_cast<size_t>(j)] = finite ? most / 127 : std::numeric_limits<float>::quiet_NaN();
  }
  return all;
}

}  // namespace

void PackedLinear::Free::operator()(void* memory) const { std::free(memory); }

PackedLinear::PackedLinear(const float* weight, const float* bias, int64_t inputs, int64_t outputs, WeightType type,
                           int64_t together)
    : inputs_(inputs), outputs_(outputs), together_(together), type_(type), bias_(static_cast<size_t>(outputs), 0.0f) {
  if (bias) std::copy_n(bias, outputs, bias_.begin());
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes(), 64));
  panels_.reset(std::aligned_alloc(64, (size + 63) / 64 * 64));
  if (!panels_) throw std::bad_alloc();
  std::fill_n(static_cast<char*>(panels_.get()), size, '\0');
  const auto at = [&](int64_t j, int64_t l) { return weight[j * inputs + l]; };
  if (type == WeightType::fp32) {
    kernels().pack_panels({weight, inputs, /*transposed=*/true, inputs, outputs, type, panels_.get()});
  } else if (type == WeightType::bf16) {
    auto* const to = static_cast<uint16_t*>(panels_.get());
    for_weights(inputs, outputs, together, [&](int64_t index, int64_t j, int64_t l) { to[index] = to_bf16(at(j, l)); });
  } else {
    scale_ = scales(weight, inputs, outputs);
    auto* const to = static_cast<int8_t*>(panels_.get());
    for_weights(inputs, outputs, together, [&](int64_t index, int64_t j, int64_t l) {
      const float scale = scale_[static_cast<size_t>(j)];
      to[index] = scale > 0 ? static_cast<int8_t>(std::nearbyint(at(j, l) / scale)) : int8_t{0};
    });
  }
}

int64_t PackedLinear::bytes() const { return rounded(outputs_, kPanelColumns) * panel_rows() * bytes_of(type_); }

Gemm PackedLinear::gemm(int64_t first, int64_t count) const {
  Gemm p;
  p.n = count, p.k = inputs_;
  p.b = static_cast<const char*>(panels_.get()) + first * panel_rows() * bytes_of(type_);
  p.b_panels = true, p.b_type = type_;
  p.b_scale = scale_.empty() ? nullptr : scale_.data() + first;
  p.bias = bias_.data() + first;
  return p;
}

Gemm PackedLinear::gemm(int64_t first, int64_t count, int64_t first_input, int64_t inputs) const {
  Gemm p = gemm(first, count);
  p.k = inputs, p.b_panel_rows = panel_rows();
  p.b = static_cast<const char*>(p.b) + first_input * kPanelColumns * bytes_of(type_);
  return p;
}

}  // namespace sparsight::cpu
