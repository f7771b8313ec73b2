#include "sparsight/kernels/experts/packed_experts.h"

#include <array>

#include "sparsight/kernels/experts/packed_tiles.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/pack/pack_experts.h"
#include "sparsight/kernels/pack/quantise.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

std::vector<float> copied(const float* values, int64_t count) {
  return values ? std::vector<float>(values, values + count) : std::vector<float>();
}

// matrices: [E,inputs,outputs].
struct Matrices {
  const float* values;
  int64_t experts, inputs, outputs;
  int64_t numbers() const { return experts * inputs * outputs; }
};

std::vector<uint16_t> as_bf16(const Matrices& m) {
  std::vector<uint16_t> out(static_cast<size_t>(m.numbers()));
  std::transform(m.values, m.values + m.numbers(), out.begin(), to_bf16);
  return out;
}

std::vector<float> scales(const Matrices& m) {
  std::vector<float> scale;
  for (int64_t e = 0; e < m.experts; ++e)
    for (int64_t o = 0; o < m.outputs; ++o)
      scale.push_back(int8_scale(m.values + e * m.inputs * m.outputs + o, m.inputs, m.outputs));
  return scale;
}

std::vector<int8_t> as_int8(const Matrices& m, const std::vector<float>& scale) {
  std::vector<int8_t> out(static_cast<size_t>(m.numbers()));
  for (int64_t i = 0; i < m.numbers(); ++i) {
    const int64_t of = i / (m.inputs * m.outputs) * m.outputs + i % m.outputs;
    out[static_cast<size_t>(i)] = to_int8(m.values[i], scale[static_cast<size_t>(of)]);
  }
  return out;
}

}  // namespace

PackedExperts::PackedExperts(Threads& threads, const MlpShape& shape, const float* w1, const float* b1, const float* w2,
                             const float* b2, WeightType type)
    : shape_(shape),
      type_(type),
      b1_(copied(b1, shape.experts * shape.hidden)),
      b2_(copied(b2, shape.experts * shape.width)) {
  const Matrices first{w1, shape.experts, shape.width, shape.hidden},
      second{w2, shape.experts, shape.hidden, shape.width};
  if (type == WeightType::fp32 && kernels().has_tiles) {
    auto own = std::make_shared<std::array<std::vector<float>, 2>>();
    *own = {copied(w1, first.numbers()), copied(w2, second.numbers())};
    w1_ = (*own)[0].data(), w2_ = (*own)[1].data();
    owner_ = std::move(own);
    return;
  }
  const bool tiles = kernels().has_tiles && fits_tiles(shape.width);
  layout_ = (tiles ? tile_layout : panel_layout)(type, shape.width, shape.hidden);
  panels_ = ArenaArray(static_cast<size_t>(shape.experts * layout_.expert_bytes()));
  const auto pack = [&](const void* one, const void* two) {
    pack_experts(threads, layout_, shape.experts, one, two, panels_.data());
  };
  if (type == WeightType::fp32) {
    pack(w1, w2);
  } else if (type == WeightType::bf16) {
    pack(as_bf16(first).data(), as_bf16(second).data());
  } else {
    scale1_ = scales(first), scale2_ = scales(second);
    pack(as_int8(first, scale1_).data(), as_int8(second, scale2_).data());
  }
}

PackedExperts::PackedExperts(const MlpShape& shape, const float* w1, const float* b1, const float* w2, const float* b2,
                             std::shared_ptr<const void> owner)
    : shape_(shape),
      type_(WeightType::fp32),
      owner_(std::move(owner)),
      w1_(w1),
      w2_(w2),
      b1_(copied(b1, shape.experts * shape.hidden)),
      b2_(copied(b2, shape.experts * shape.width)) {}

int64_t PackedExperts::bytes() const {
  const int64_t matrices =
      shape_.experts * (panels_.data() ? layout_.expert_bytes() : 8 * shape_.width * shape_.hidden);
  return matrices + 4 * static_cast<int64_t>(b1_.size() + b2_.size() + scale1_.size() + scale2_.size());
}

StoredExperts PackedExperts::stored(int64_t rows) const {
  const auto numbers = [](const std::vector<float>& v) { return v.empty() ? nullptr : v.data(); };
  // (What is only read is not written through a view.)
  const auto view = [](const float* matrices, int64_t in, int64_t out) {
    return WeightView{const_cast<float*>(matrices), in, out, false};
  };
  StoredExperts experts{.shape = shape_,
                        .b1 = numbers(b1_),
                        .b2 = numbers(b2_),
                        .w1 = view(w1_, shape_.width, shape_.hidden),
                        .w2 = view(w2_, shape_.hidden, shape_.width),
                        .panels = panels_.data(),
                        .layout = layout_,
                        .scale1 = numbers(scale1_),
                        .scale2 = numbers(scale2_)};
  experts.shape.rows = rows;
  return experts;
}

void PackedExperts::run(Threads& threads, const ExpertRowNumbers& rows, const float* tokens, Activation activation,
                        const float* residual, float* out) const {
  const StoredExperts experts = stored(rows.map.rows);
  const int64_t width = shape_.width;
#if defined(__x86_64__)
  if (panels_.data() && in_tiles()) {
    packed_tiles_forward(threads, rows, experts, tokens, activation, out);
    if (!residual) return;
    run_ranges(threads, rows.map.tokens, rows_of_task(width), [&](int64_t begin, int64_t end) {
      kernels().add_scaled(1, residual + begin * width, out + begin * width, (end - begin) * width);
    });
    return;
  }
#endif
  expert_mlp_forward(
      threads, rows, experts,
      {.tokens = tokens, .activation = activation, .residual = {.residual = residual, .width = width}, .out = out});
}

}  // namespace sparsight::cpu
