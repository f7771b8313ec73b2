#include "sparsight/attacks/run/attack_examples.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "sparsight/analysis/patch_tint.h"
#include "sparsight/attacks/run/attack_files.h"
#include "sparsight/data/readers/png_write.h"

namespace sparsight {
namespace {

// x: [C,H,W] of 0..1. [3,H,W] uint8
at::Tensor rgb_bytes(const at::Tensor& x) {
  const at::Tensor bytes = (x * 255).round().clamp(0, 255).to(at::kByte);
  return (bytes.size(0) == 3 ? bytes : bytes.narrow(0, 0, 1).expand({3, bytes.size(1), bytes.size(2)})).contiguous();
}

// Enlarged without smoothing, so that pixels are seen.
at::Tensor enlarged_rgb(const at::Tensor& x) {
  constexpr int64_t kSide = 160;
  const int64_t factor = std::max<int64_t>(1, kSide / std::max<int64_t>(1, std::min(x.size(1), x.size(2))));
  return rgb_bytes(x).repeat_interleave(factor, 1).repeat_interleave(factor, 2).contiguous();
}

std::string panels_png(const at::Tensor& x, const ModelVerdict& verdict, int64_t index) {
  std::vector<Routing> routings;
  const Routings own = RoutingReplay(verdict.routings).of(at::tensor({index}, at::kLong));
  for (const std::string& layer : verdict.layers)
    if (!own.at(layer).soft && can_tint(own.at(layer))) routings.push_back(own.at(layer));
  return routings.empty() ? "" : encode_png(routing_panels(rgb_bytes(x), routings, 0));
}

}  // namespace

void AttackExamples::add(const AttackedBatch& images, const AttackShard& piece, const AttackPlan& plan) {
  const at::Tensor stage = fooled_by(piece, plan);
  const auto class_at = [&](const at::Tensor& numbers, int64_t i) {
    return classes_.at(static_cast<size_t>(numbers[i].item<int64_t>()));
  };
  const auto true_classes = [&](const at::Tensor& label) {
    if (label.dim() == 0) return classes_.at(static_cast<size_t>(label.item<int64_t>()));
    std::string names;
    for (size_t k = 0; k < classes_.size(); ++k)
      if (label[static_cast<int64_t>(k)].item<bool>()) names += (names.empty() ? "" : ", ") + classes_[k];
    return names;
  };
  for (int64_t i = 0; i < stage.size(0) && std::ssize(examples_) < count_; ++i) {
    const int64_t by = stage[i].item<int64_t>();
    if (by < 0) continue;
    const at::Tensor clean = images.batch.pixels[i], attacked = piece.pixels[i], change = attacked - clean;
    const double largest = change.abs().max().item<double>();
    AttackExample example;
    example.id = images.ids[static_cast<size_t>(i)];
    example.label = true_classes(images.batch.labels.label[i]);
    example.prediction = class_at(piece.attacked.logits.argmax(1), i);
    example.stage = plan.stages.at(static_cast<size_t>(by)).name;
    example.norm = piece.norm[i].item<double>();
    example.magnification = largest > 0 ? 0.5 / largest : 1;
    example.clean = encode_png(enlarged_rgb(clean));
    example.attacked = encode_png(enlarged_rgb(attacked));
    example.change = encode_png(enlarged_rgb(0.5 + example.magnification * change));
    example.clean_experts = panels_png(clean, piece.clean, i);
    example.attacked_experts = panels_png(attacked, piece.attacked, i);
    examples_.push_back(std::move(example));
  }
}

}  // namespace sparsight
