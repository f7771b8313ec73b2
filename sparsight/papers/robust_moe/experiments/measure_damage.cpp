#include "sparsight/papers/robust_moe/experiments/measure_damage.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include <nlohmann/json.hpp>

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/partial_batch.h"
#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/experiments/shares.h"

namespace sparsight::robust_moe {
namespace {

// [B] int64: the assignments of each image that its experts took, summed over layers.
at::Tensor kept_by_image(const ModelOutput& output, int64_t images) {
  at::Tensor kept = at::zeros({images}, at::kLong);
  for (const Routing& routing : output.routings) {
    const at::Tensor image = routing.token.div(routing.layout.per_image, "floor");
    kept.index_add_(0, image, routing.kept.to(at::kLong));
  }
  return kept;
}

// Sums over batches.
struct DamageSums {
  int64_t batches = 0, others = 0, correct_before = 0, correct_after = 0, changed = 0, losers = 0;
  int64_t kept_before = 0, fewer = 0;
  double dropped_before = 0, dropped_after = 0;
};

void add_damage(DamageSums& sums, AttackedModel& model, const AttackBatch& batch, const Attack& attack) {
  const int64_t images = batch.pixels.size(0);
  const at::Tensor first = at::zeros({1}, at::kLong);
  const at::Tensor pixels = attack_part_of_batch(attack, model, batch, first);
  const BatchDamage damage = batch_damage(model, batch, pixels, at::arange(images, at::kLong).eq(0));
  ++sums.batches;
  sums.others += damage.others;
  sums.correct_before += damage.correct_before;
  sums.correct_after += damage.correct_after;
  sums.changed += damage.changed;
  sums.dropped_before += damage.dropped_before;
  sums.dropped_after += damage.dropped_after;
  const at::NoGradGuard no_grad;
  const AttackPass pass{.image = batch.image, .step = first_step("measure_damage", 0)};
  const auto kept_by_others = [&](const at::Tensor& x) {
    return kept_by_image(model.forward(x, pass), images).slice(0, 1);
  };
  const at::Tensor before = kept_by_others(batch.pixels), after = kept_by_others(pixels);
  const at::Tensor fewer = (before - after).clamp_min(0);
  sums.losers += count_true(fewer.gt(0));
  sums.kept_before += before.sum().item<int64_t>();
  sums.fewer += fewer.sum().item<int64_t>();
}

}  // namespace

Json measure_damage(const std::shared_ptr<ImageModel>& model, const AttackBatch& images, const Attack& attack,
                    int64_t batch) {
  const int64_t batches = batch > 1 ? images.pixels.size(0) / batch : 0;
  if (batches == 0)
    fail("the damage to other images takes batches of at least two, got batches of ", batch, " and ",
         images.pixels.size(0), " images");
  AttackedImageModel under_attack(model);
  DamageSums sums;
  for (int64_t b = 0; b < batches; ++b)
    add_damage(sums, under_attack, images.select(at::arange(b * batch, (b + 1) * batch, at::kLong)), attack);
  const auto n = static_cast<double>(sums.batches);
  return {{"others", sums.others},
          {"changed", percent(sums.changed, sums.others)},
          {"error_before", percent(sums.others - sums.correct_before, sums.others)},
          {"error_after", percent(sums.others - sums.correct_after, sums.others)},
          {"lost", percent(sums.losers, sums.others)},
          {"lost_assignments", percent(sums.fewer, sums.kept_before)},
          {"dropped_before", 100 * sums.dropped_before / n},
          {"dropped_after", 100 * sums.dropped_after / n}};
}

}  // namespace sparsight::robust_moe
