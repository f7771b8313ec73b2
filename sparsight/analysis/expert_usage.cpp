#include "sparsight/analysis/expert_usage.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/losses/importance.h"
#include "sparsight/moe/losses/logits.h"
#include "sparsight/moe/losses/token_sums.h"

namespace sparsight {
namespace {

// values: [E], not negative.
double compute_entropy(const at::Tensor& values) {
  const double total = values.sum().item<double>();
  if (total <= 0) return 0;
  const at::Tensor share = values / total;
  return -share.masked_select(share > 0).mul(share.masked_select(share > 0).log()).sum().item<double>();
}

}  // namespace

ExpertUsage expert_usage(const std::vector<Routing>& routings) {
  const at::NoGradGuard no_grad;
  if (routings.empty()) fail("the usage of experts takes the routings of at least one batch, got none");
  const int64_t experts = routings.front().experts;
  at::Tensor count = at::zeros({experts}, at::kDouble), importances = at::zeros({experts}, at::kDouble);
  double kept = 0, token_entropies = 0;
  int64_t tokens = 0;
  bool logits = true;
  for (const Routing& r : routings) {
    if (r.soft) fail("the layer ", printable(r.layer), " mixes tokens: none of its experts is used more than others");
    if (r.experts != experts)
      fail("the usage of experts takes the routings of one layer, got ", experts, " and ", r.experts, " experts");
    count = count + r.chosen_count.cpu().to(at::kDouble);
    kept += r.kept.sum().item<double>();
    logits = logits && r.clean_logits.defined();
    importances = importances + (logits ? dense_importance(r).sum(0) : importance(r)).cpu().to(at::kDouble);
    const int64_t valid = valid_token_count(r);
    if (logits && valid > 0) token_entropies += entropy_loss(r).item<double>() * static_cast<double>(valid);
    tokens += valid;
  }
  ExpertUsage usage;
  for (int64_t e = 0; e < experts; ++e) usage.count.push_back(std::llround(count[e].item<double>()));
  usage.entropy = compute_entropy(count);
  usage.relative_entropy = experts > 1 ? usage.entropy / std::log(static_cast<double>(experts)) : 1;
  if (logits && tokens > 0) usage.token_entropy = token_entropies / static_cast<double>(tokens);
  usage.importance_cv2 = cv_squared(importances).item<double>();
  usage.load_cv2 = cv_squared(count).item<double>();
  const double chosen = count.sum().item<double>();
  if (chosen > 0) usage.dropped = (chosen - kept) / chosen;
  return usage;
}

}  // namespace sparsight
