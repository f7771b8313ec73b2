#include "sparsight/papers/robust_moe/experiments/measure_transfer.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

#include <nlohmann/json.hpp>

#include "sparsight/attacks/attacked_image_model.h"
#include "sparsight/attacks/transfer.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/papers/robust_moe/experiments/shares.h"

namespace sparsight::robust_moe {

Json measure_transfer(const std::shared_ptr<ImageModel>& source, const std::shared_ptr<ImageModel>& target,
                      const AttackBatch& images, const Attack& attack, int64_t batch) {
  AttackedImageModel from(source), to(target);
  const int64_t total = images.pixels.size(0);
  std::string clean_errors, robust_errors;
  int64_t clean = 0, robust = 0, fooled = 0, source_robust = 0;
  for (int64_t first = 0; first < total; first += batch) {
    const AttackBatch some = images.select(at::arange(first, std::min(total, first + batch), at::kLong));
    const TransferResult found = transfer(attack, from, to, some);
    clean += count_true(found.target_clean);
    robust += count_true(found.target_correct);
    clean_errors += to_bits(~found.target_clean);
    robust_errors += to_bits(~found.target_correct);
    fooled += count_true(found.target_clean & ~found.target_correct);
    source_robust += count_true(found.source.correct);
  }
  const Interval interval = wilson_interval(total - robust, total);
  return {{"images", total},
          {"clean_correct", clean},
          {"outcomes", {{"clean_error", clean_errors}, {"robust_error", robust_errors}}},
          {"clean_error", percent(total - clean, total)},
          {"robust_error", percent(total - robust, total)},
          {"robust_low", 100 * interval.low},
          {"robust_high", 100 * interval.high},
          {"success", percent(fooled, clean)},
          {"source_error", percent(total - source_robust, total)}};
}

}  // namespace sparsight::robust_moe
