#include "sparsight/kernels/experts/packed_experts.h"

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/kernels/experts/packed_tiles.h"
#include "sparsight/kernels/kernels.h"
#include "sparsight/kernels/memory/scratch.h"
#include "sparsight/kernels/pack/pack_experts.h"
#include "sparsight/kernels/threads/tasks.h"

namespace sparsight::cpu {
namespace {

std::vector<float> copied(const float* values, int64_t count) {
  return values ? std::vector<float>(values, values + count) : std::vector<float>();
}

// The part of an array of E equal parts, or null of an empty one.
template <class T>
auto part(T& all, int64_t experts, int64_t expert) {
  return all.empty() ? nullptr : all.data() + expert * static_cast<int64_t>(all.size()) / experts;
}

void copy_part(const float* from, int64_t count, float* to) {
  if (!to) return;
  if (from)
    std::copy_n(from, count, to);
  else
    std::fill_n(to, count, 0.0F);
}

// That of the active level; none where plain matrices are the fastest.
PackedLayout active_layout(const MlpShape& shape, WeightType type) {
  if (!kernels().has_tiles || type == WeightType::int8) return panel_layout(type, shape.width, shape.hidden);
  return type == WeightType::bf16 ? tile_layout(shape.width, shape.hidden) : PackedLayout{};
}

}  // namespace

int64_t PackedExperts::memory_bytes(const MlpShape& shape, WeightType type) {
  const PackedLayout layout = active_layout(shape, type);
  return shape.experts * (layout.panel == 0 ? 8 * shape.width * shape.hidden : layout.expert_bytes());
}

PackedExperts::PackedExperts(const MlpShape& shape, WeightType type, bool has_b1, bool has_b2,
                             std::shared_ptr<const void> memory)
    : shape_(shape),
      type_(type),
      layout_(active_layout(shape, type)),
      memory_(std::move(memory)),
      b1_(has_b1 ? static_cast<size_t>(shape.experts * shape.hidden) : 0),
      b2_(has_b2 ? static_cast<size_t>(shape.experts * shape.width) : 0) {
  if (is_plain()) {
    w1_ = static_cast<const float*>(memory_.get()), w2_ = w1_ + shape.experts * shape.width * shape.hidden;
    return;
  }
  if (type == WeightType::int8) {
    scale1_.resize(static_cast<size_t>(shape.experts * shape.hidden));
    scale2_.resize(static_cast<size_t>(shape.experts * shape.width));
  }
}

PackedExperts::PackedExperts(Threads& threads, const MlpShape& shape, const float* w1, const float* b1, const float* w2,
                             const float* b2, WeightType type)
    : PackedExperts(shape, type, b1, b2) {
  const int64_t width = shape.width, hidden = shape.hidden;
  run_tasks(threads, shape.experts, [&](int64_t e, const auto&) {
    const float *const first = w1 + e * width * hidden, *const second = w2 + e * width * hidden;
    const float *const bias1 = b1 ? b1 + e * hidden : nullptr, *const bias2 = b2 ? b2 + e * width : nullptr;
    if (type == WeightType::fp32)
      return set(threads, e,
                 {MatrixView::fp32(first, width, hidden), MatrixView::fp32(second, hidden, width), bias1, bias2});
    const StoredMatrix rounded1(first, type, width, hidden, Outputs::columns),
        rounded2(second, type, hidden, width, Outputs::columns);
    set(threads, e, {rounded1.view(), rounded2.view(), bias1, bias2});
  });
}

void PackedExperts::set(Threads& threads, int64_t expert, const MlpView& weights) {
  const int64_t numbers = shape_.width * shape_.hidden;
  SPARSIGHT_CHECK(weights.w1.type == type_ && weights.w2.type == type_ && !owner_);
  copy_part(weights.b1, shape_.hidden, part(b1_, shape_.experts, expert));
  copy_part(weights.b2, shape_.width, part(b2_, shape_.experts, expert));
  copy_part(weights.w1.scale, shape_.hidden, part(scale1_, shape_.experts, expert));
  copy_part(weights.w2.scale, shape_.width, part(scale2_, shape_.experts, expert));
  if (!weights.w1.data) return;
  if (is_plain()) {
    std::copy_n(static_cast<const float*>(weights.w1.data), numbers, const_cast<float*>(plain_w1(expert)));
    std::copy_n(static_cast<const float*>(weights.w2.data), numbers, const_cast<float*>(plain_w2(expert)));
  } else {
    pack_experts(threads, layout_, 1, weights.w1.data, weights.w2.data, panels(expert));
  }
}

StoredMlp PackedExperts::stored(Threads& threads, int64_t expert) const {
  const int64_t width = shape_.width, hidden = shape_.hidden;
  StoredMlp out{{type_, width, hidden, Outputs::columns}, {type_, hidden, width, Outputs::columns}, {}, {}};
  const auto copy = [&](const std::vector<float>& all, std::vector<float>& to) {
    const auto each = static_cast<int64_t>(all.size()) / shape_.experts;
    to.assign(all.begin() + expert * each, all.begin() + (expert + 1) * each);
  };
  copy(b1_, out.b1), copy(b2_, out.b2), copy(scale1_, out.w1.scale()), copy(scale2_, out.w2.scale());
  if (is_plain()) {
    std::copy_n(plain_w1(expert), width * hidden, static_cast<float*>(out.w1.data()));
    std::copy_n(plain_w2(expert), width * hidden, static_cast<float*>(out.w2.data()));
  } else {
    unpack_experts(threads, layout_, 1, panels(expert), out.w1.data(), out.w2.data());
  }
  return out;
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
  const int64_t matrices = shape_.experts * (is_plain() ? 8 * shape_.width * shape_.hidden : layout_.expert_bytes());
  return matrices + 4 * static_cast<int64_t>(b1_.size() + b2_.size() + scale1_.size() + scale2_.size());
}

StoredExperts PackedExperts::kernel_view(int64_t rows) const {
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
                        .panels = is_plain() ? nullptr : panels(0),
                        .layout = layout_,
                        .scale1 = numbers(scale1_),
                        .scale2 = numbers(scale2_)};
  experts.shape.rows = rows;
  return experts;
}

namespace {

void run_stored(Threads& threads, const ExpertRowNumbers& rows, const StoredExperts& experts, const float* tokens,
                Activation activation, const float* residual, float* out) {
  const int64_t width = experts.shape.width;
#if defined(__x86_64__)
  if (experts.layout.panel == kTilePanelColumns)
    return packed_tiles_forward(threads, rows, experts, tokens, activation, residual, out);
#endif
  expert_mlp_forward(
      threads, rows, experts,
      {.tokens = tokens, .activation = activation, .residual = {.residual = residual, .width = width}, .out = out});
}

}  // namespace

void PackedExperts::run(Threads& threads, const ExpertRowNumbers& rows, const float* tokens, Activation activation,
                        const float* residual, float* out) const {
  run_stored(threads, rows, kernel_view(rows.map.rows), tokens, activation, residual, out);
}

void PackedExperts::run_each(Threads& threads, const MlpShape& shape, const PackedExperts* const* each,
                             const ExpertRowNumbers& rows, const float* tokens, Activation activation,
                             const float* residual, float* out) {
  std::pmr::vector<StoredExperts> stored(static_cast<size_t>(shape.experts), scratch());
  StoredExperts experts;
  for (int64_t e = 0; e < shape.experts; ++e)
    if (each[e]) stored[static_cast<size_t>(e)] = experts = each[e]->kernel_view(rows.map.rows);
  experts.shape = shape;
  experts.shape.rows = rows.map.rows;
  experts.each = stored.data();
  run_stored(threads, rows, experts, tokens, activation, residual, out);
}

}  // namespace sparsight::cpu
