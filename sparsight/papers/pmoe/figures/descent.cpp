#include "sparsight/papers/pmoe/figures/descent.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/papers/pmoe/figures/routing_monitor.h"
#include "sparsight/papers/pmoe/two_layer/value_function.h"

namespace sparsight::pmoe {

std::vector<DescentStep> descent(const PatternRun& run, const PatternModel& distribution, const PatchSet& test,
                                 int64_t steps, int64_t batch, double rate, uint64_t seed) {
  const at::NoGradGuard no_grad;
  const PatchSet pool = sample_set(distribution, cat("descent.", seed), steps * batch);
  const TwoLayerSetting setting = pattern_setting(run, pool);
  const std::shared_ptr<PatchCnn> model = make_two_layer(setting, pool, {seed, seed});
  if (run.form == "separate") PatchSgd(model, pool, setting.sgd, seed).train_routers();
  if (run.form == "joint") {  // lemma H.4 starts from weights for which assumption 4.4 holds
    const PatchSet first = sample_set(distribution, cat("settle.", seed), 200);
    PatchSgd sgd(model, first, setting.sgd, seed);
    for (int64_t epoch = 1; epoch <= 10; ++epoch) {
      sgd.train_epoch();
      const RoutingMoment moment = routing_moment(*model, test, epoch);
      if (std::min(moment.share[0], moment.share[1]) >= 0.95) break;
    }
  }
  const double gamma = 1 / (static_cast<double>(distribution.sets()) * std::sqrt(distribution.delta())),
               m = static_cast<double>(run.experts * run.filters), k = static_cast<double>(run.experts),
               l = static_cast<double>(run.form == "cnn" ? pool.patches : run.patches);
  std::vector<DescentStep> found;
  double before = mean_loss(*model, test);
  for (int64_t step = 0; step < steps; ++step) {
    const ValueFunction v = value_function(signed_outputs(*model, test), test.labels);
    const double first = v.value[0] * v.value[0], second = v.value[1] * v.value[1];
    DescentStep now;
    now.v_squared = run.form == "cnn" ? std::max(first, second) : first + second;
    now.lr =
        rate * gamma * gamma * gamma * now.v_squared / m * (run.form == "joint" ? l * l * l / (k * k) : 1 / (l * l));
    sgd_step(model, pool.slice(step * batch, batch), now.lr);
    const double after = mean_loss(*model, test);
    now.drop = before - after;
    before = after;
    found.push_back(now);
  }
  return found;
}

}  // namespace sparsight::pmoe
