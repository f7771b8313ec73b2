#include "sparsight/papers/pmoe/figures/large_gradients.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/two_layer/value_function.h"

namespace sparsight::pmoe {
namespace {

// v_s of each expert in joint training: max over classes i of P[i's pattern in its top-l] E[G v | that, i].
std::vector<double> joint_values(PatchCnn& model, const PatchSet& data) {
  const Routing routing = route_patches(model, data, 0, data.size());
  const at::Tensor y = 2 * data.labels.to(at::kDouble) - 1;
  const at::Tensor v = at::sigmoid(-y * signed_outputs(model, data).to(at::kDouble));
  const at::Tensor image = routing.token.floor_divide(data.patches);
  const at::Tensor is_pattern = routing.token.remainder(data.patches) == data.position.index_select(0, image);
  const at::Tensor weight = is_pattern.to(at::kDouble) * routing.gate.to(at::kDouble) * v.index_select(0, image);
  std::vector<double> values;
  for (int64_t e = 0; e < routing.experts; ++e) {
    double maximum = 0;
    for (int64_t k = 0; k < 2; ++k) {
      const at::Tensor here = (routing.expert == e).logical_and(data.labels.index_select(0, image) == k);
      const double count = std::max(1.0, (data.labels == k).sum().item<double>());
      maximum = std::max(maximum, (weight * here.to(at::kDouble)).sum().item<double>() / count);
    }
    values.push_back(maximum);
  }
  return values;
}

}  // namespace

LargeGradients large_gradients(const PatternRun& run, const PatternModel& distribution, const PatchSet& train,
                               uint64_t seed) {
  const at::NoGradGuard no_grad;
  const TwoLayerSetting setting = pattern_setting(run, train);
  const std::shared_ptr<PatchCnn> model = make_two_layer(setting, train, {seed, seed});
  if (run.form == "separate") PatchSgd(model, train, setting.sgd, seed).train_routers();
  std::vector<double> values;
  if (run.form == "joint") {
    values = joint_values(*model, train);
  } else {
    const ValueFunction v = value_function(signed_outputs(*model, train), train.labels);
    values = run.form == "cnn" ? std::vector<double>{std::max(v.value[0], v.value[1])}
                               : std::vector<double>{v.value[0], v.value[1]};
  }
  at::Tensor& weights = model->parts().experts->w1;
  const at::Tensor start = weights.clone();
  constexpr double kProbe = 1e-2;
  sgd_step(model, train, kProbe);
  const at::Tensor norms = (weights - start).norm(2, 1) / kProbe;  // [E,F]

  const auto p = static_cast<double>(distribution.sets());
  const double root = std::sqrt(distribution.delta()),
               taken = static_cast<double>(run.form == "cnn" ? train.patches : run.patches);
  LargeGradients found;
  found.gamma = 1 / (p * root);
  found.share = 2;
  for (int64_t e = 0; e < norms.size(0); ++e) {
    const double threshold = values[static_cast<size_t>(e)] / (taken * p * root);
    if (threshold == 0) continue;  // the expert never sees a pattern; the lemmas say nothing about it
    const double share = (norms[e] >= threshold).to(at::kDouble).mean().item<double>();
    if (share < found.share) found.share = share, found.threshold = threshold;
  }
  SPARSIGHT_CHECK(found.share <= 1);
  return found;
}

}  // namespace sparsight::pmoe
