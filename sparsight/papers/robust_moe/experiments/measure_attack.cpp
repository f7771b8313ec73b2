#include "sparsight/papers/robust_moe/experiments/measure_attack.h"

#include <cmath>
#include <map>

#include <ATen/ops/arange.h>

#include "sparsight/analysis/attacked_routing.h"
#include "sparsight/analysis/output_redundancy.h"
#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/check_perturbation.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/papers/robust_moe/experiments/shares.h"

namespace sparsight::robust_moe {
namespace {

// Distances of the outputs of a layer's tokens whose experts changed.
struct LayerRedundancy {
  double attacked = 0, random = 0;
  int64_t tokens = 0;
};

// Sums over batches.
struct Sums {
  int64_t images = 0, clean_correct = 0, robust = 0, changed = 0, fooled = 0;
  std::string clean_errors, robust_errors;  // to_bits() all images
  double clean_loss = 0, attacked_loss = 0, largest = 0;
  AttackCost cost;
  AttackedRouting routing;
  std::map<std::string, LayerRedundancy> redundancy;  // by layer
};

void add_redundancy(Sums& sums, ImageModel& model, const ModelInput& clean, const ModelOutput& attacked,
                    uint64_t seed) {
  for (const auto& [name, found] : output_redundancy(model, clean, to_routings(attacked), seed)) {
    LayerRedundancy& layer = sums.redundancy[name];
    const auto tokens = static_cast<double>(found.tokens);
    layer.tokens += found.tokens;
    layer.attacked += tokens * found.attacked;
    layer.random += tokens * found.random;
  }
}

void add_batch(Sums& sums, const std::shared_ptr<ImageModel>& model, const AttackBatch& batch,
               const MeasuredAttack& how) {
  ForwardMode mode = ForwardMode::evaluation();
  mode.losses = how.losses;
  AttackedImageModel under_attack(model, {.mode = mode});
  const AttackResult result = how.attack->run(under_attack, batch);
  const at::NoGradGuard no_grad;
  const ModelInput clean_input{.images = batch.pixels, .info = {.image = batch.image}};
  const ModelOutput clean = model->forward(clean_input);
  const ModelOutput attacked = model->forward({.images = result.pixels, .info = {.image = batch.image}});
  const at::Tensor& label = batch.labels.label;
  const at::Tensor right = classified_correctly(clean.logits, label);
  const at::Tensor robust = classified_correctly(attacked.logits, label);
  sums.images += batch.pixels.size(0);
  sums.clean_correct += count_true(right);
  sums.robust += count_true(robust);
  sums.clean_errors += to_bits(~right);
  sums.robust_errors += to_bits(~robust);
  sums.fooled += count_true(right & ~robust);
  sums.changed += count_true(clean.logits.argmax(1).ne(attacked.logits.argmax(1)));
  sums.clean_loss += attack_loss::cross_entropy(clean.logits, batch.labels).sum().item<double>();
  sums.attacked_loss += attack_loss::cross_entropy(attacked.logits, batch.labels).sum().item<double>();
  sums.largest = std::max(sums.largest, largest_perturbation(result.pixels, batch.pixels, Norm::linf));
  sums.cost += result.cost;
  if (clean.routings.empty()) return;
  const at::Tensor moved = result.pixels.ne(batch.pixels).flatten(1).any(1);
  sums.routing.add(clean.routings, attacked.routings, moved);
  add_redundancy(sums, *model, clean_input, attacked, how.seed);
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json layers_json(const Sums& sums) {
  Json layers = sums.routing.layers();
  for (Json& layer : layers) {
    const auto found = sums.redundancy.find(layer.at("layer").get<std::string>());
    const LayerRedundancy redundancy = found == sums.redundancy.end() ? LayerRedundancy{} : found->second;
    const auto tokens = static_cast<double>(redundancy.tokens);
    layer["redundancy"] = number_or_null(redundancy.attacked / tokens);
    layer["redundancy_random"] = number_or_null(redundancy.random / tokens);
  }
  return layers;
}

}  // namespace

Json measure_attack(const std::shared_ptr<ImageModel>& model, const AttackBatch& images, const MeasuredAttack& how) {
  Sums sums;
  const int64_t total = images.pixels.size(0);
  for (int64_t first = 0; first < total; first += how.batch)
    add_batch(sums, model, images.select(at::arange(first, std::min(total, first + how.batch), at::kLong)), how);
  const auto n = static_cast<double>(sums.images);
  const Interval interval = wilson_interval(sums.images - sums.robust, sums.images);
  return {{"images", sums.images},
          {"clean_correct", sums.clean_correct},
          {"outcomes", {{"clean_error", sums.clean_errors}, {"robust_error", sums.robust_errors}}},
          {"clean_error", percent(sums.images - sums.clean_correct, sums.images)},
          {"robust_error", percent(sums.images - sums.robust, sums.images)},
          {"robust_low", 100 * interval.low},
          {"robust_high", 100 * interval.high},
          {"success", percent(sums.fooled, sums.clean_correct)},
          {"changed", percent(sums.changed, sums.images)},
          {"clean_loss", sums.clean_loss / n},
          {"attacked_loss", sums.attacked_loss / n},
          {"queries", static_cast<double>(sums.cost.queries) / n},
          {"gradients", static_cast<double>(sums.cost.gradients) / n},
          {"largest", 255 * sums.largest},
          {"layers", layers_json(sums)}};
}

}  // namespace sparsight::robust_moe
