#include "sparsight/papers/pmoe/figures/activation_stability.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sparsight/core/error.h"

namespace sparsight::pmoe {
namespace {

// [E,N,l,d]: patches that the experts can see: those chosen by a frozen router, otherwise all.
at::Tensor seen_patches(PatchCnn& model, const PatchSet& data, bool frozen) {
  const int64_t count = data.size(), experts = model.parts().experts->w1.size(0);
  const at::Tensor all = data.rows(at::arange(count * data.patches, at::kLong), at::kFloat);
  if (!frozen) return all.view({1, count, data.patches, -1}).expand({experts, -1, -1, -1});
  const Routing routing = route_patches(model, data, 0, count);
  return all.index_select(0, routing.token).view({experts, count, -1, data.width()});
}

// [E,N,l,F]: inner products of patches with weights [E,d,F].
at::Tensor products(const at::Tensor& patches, const at::Tensor& weights) {
  const int64_t experts = patches.size(0), count = patches.size(1), each = patches.size(2);
  return at::bmm(patches.reshape({experts, count * each, -1}), weights).view({experts, count, each, -1});
}

// The largest norm of a neuron's weights [E,d,F].
double largest_norm(const at::Tensor& weights) { return weights.norm(2, 1).max().item<double>(); }

}  // namespace

ActivationStability activation_stability(const PatternRun& run, const PatchSet& train, double tau, int64_t steps,
                                         uint64_t seed) {
  if (!(tau > 0) || steps < 1)
    fail_usage("activation stability needs tau above 0 and at least 1 step, got ", tau, " and ", steps);
  const at::NoGradGuard no_grad;
  const TwoLayerSetting setting = pattern_setting(run, train);
  const std::shared_ptr<PatchCnn> model = make_two_layer(setting, train, {seed, seed});
  const bool frozen = run.form == "separate";
  if (frozen) PatchSgd(model, train, setting.sgd, seed).train_routers();
  at::Tensor& weights = model->parts().experts->w1;
  const at::Tensor start = weights.clone();
  const double limit = tau * setting.init_std;

  const at::Tensor patches = seen_patches(*model, train, frozen), first = products(patches, start);
  const at::Tensor covered = first.abs().amin(2) >= 2 * limit;  // [E,N,F]
  const at::Tensor active = first > 0;
  ActivationStability found;
  found.covered = covered.to(at::kDouble).mean().item<double>();
  found.predicted = 1 - 2 * std::numbers::e * tau * static_cast<double>(patches.size(2));

  // The first gradient, from a probe step that is undone afterwards.
  constexpr double kProbe = 1e-3;
  sgd_step(model, train, kProbe);
  double largest = largest_norm(weights - start) / kProbe;  // U
  if (model->parts().router && !frozen) model->parts().router->initialize({seed, "moe.router"});
  weights.copy_(start);
  const double rate = limit / (largest * static_cast<double>(steps));
  at::Tensor ever = at::zeros_like(covered);
  while (true) {
    const at::Tensor before = weights.clone();
    sgd_step(model, train, rate);
    const double norm = largest_norm(weights - before) / rate;
    const double maximum = std::max(largest, norm);
    if (maximum * rate * static_cast<double>(found.steps + 1) > limit) break;
    largest = maximum;
    ++found.steps;
    const at::Tensor changed = (products(patches, weights) > 0).logical_xor(active).any(2);  // [E,N,F]
    found.violations += changed.logical_and(covered).sum().item<int64_t>();
    ever = ever.logical_or(changed);
    found.move =
        std::max(found.move, largest_norm(weights - start) / (largest * rate * static_cast<double>(found.steps)));
  }
  const at::Tensor others = covered.logical_not();
  const double rest = others.to(at::kDouble).sum().item<double>();
  found.changed = rest > 0 ? ever.logical_and(others).to(at::kDouble).sum().item<double>() / rest : 0;
  return found;
}

}  // namespace sparsight::pmoe
