#include "sparsight/kernels/gemm/packed_linear.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "sparsight/kernels/pack/quantise.h"

namespace sparsight::cpu {
namespace {

int64_t rounded(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

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
    for (int64_t j = 0; j < outputs; ++j) scale_.push_back(int8_scale(weight + j * inputs, inputs, 1));
    auto* const to = static_cast<int8_t*>(panels_.get());
    for_weights(inputs, outputs, together, [&](int64_t index, int64_t j, int64_t l) {
      to[index] = to_int8(at(j, l), scale_[static_cast<size_t>(j)]);
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
