#include "sparsight/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sparsight {
namespace {

// Puts a linear warm-up before `after`, whose arguments are the fraction of the steps after the warm-up, and the epochs
// since the start.
Schedule with_warmup(const WarmupOptions& options, TrainingLength length,
                     const std::function<double(double fraction, double epoch)>& after) {
  const int64_t warmup = std::llround(options.warmup_epochs * static_cast<double>(length.steps_per_epoch));
  return [=](int64_t step) {
    if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double rest = static_cast<double>(std::max<int64_t>(1, length.total_steps - warmup));
    return after(std::min(1.0, static_cast<double>(step - warmup) / rest),
                 static_cast<double>(step) / static_cast<double>(length.steps_per_epoch));
  };
}

Schedule make_constant(const ConstantOptions& options, TrainingLength length) {
  return with_warmup(options, length, [](double, double) { return 1.0; });
}

Schedule make_cosine(const DecayOptions& options, TrainingLength length) {
  return with_warmup(options, length, [=](double fraction, double) {
    return options.final_factor + (1 - options.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * fraction));
  });
}

Schedule make_linear(const DecayOptions& options, TrainingLength length) {
  return with_warmup(options, length,
                     [=](double fraction, double) { return 1 - (1 - options.final_factor) * fraction; });
}

Schedule make_step(const StepOptions& options, TrainingLength length) {
  return with_warmup(options, length, [=](double, double epoch) {
    const auto passed = std::count_if(options.milestones.begin(), options.milestones.end(),
                                      [&](double milestone) { return epoch >= milestone; });
    return std::pow(options.gamma, static_cast<double>(passed));
  });
}

Schedule make_inverse_sqrt(const InverseSqrtOptions& options, TrainingLength) {
  const int64_t constant_until = options.constant_until == 0 ? options.warmup_steps : options.constant_until;
  if (constant_until < options.warmup_steps)
    fail_usage("schedule.constant_until is ", constant_until,
               ", before the end of the warm-up at schedule.warmup_steps = ", options.warmup_steps,
               "; raise it, or set it to 0 for no constant phase");
  return [warmup = options.warmup_steps, constant_until](int64_t step) {
    const auto t = static_cast<double>(step + 1);
    if (step < warmup) return t / static_cast<double>(warmup);
    return std::min(1.0, std::sqrt(static_cast<double>(constant_until) / t));
  };
}

}  // namespace

void WarmupOptions::declare(OptionSet& set) {
  set.real("warmup_epochs", &warmup_epochs, {0, 1e6}, "epochs of linear warmup from 0");
}

void DecayOptions::declare(OptionSet& set) {
  WarmupOptions::declare(set);
  set.real("final_factor", &final_factor, {0, 1}, "learning rate at the end, as a fraction of the base rate");
}

void StepOptions::declare(OptionSet& set) {
  WarmupOptions::declare(set);
  set.floats("milestones", &milestones, {0, 1e9}, "epochs at which the rate is multiplied by gamma");
  set.real("gamma", &gamma, {0, 1}, "factor at each milestone");
}

void InverseSqrtOptions::declare(OptionSet& set) {
  set.integer("warmup_steps", &warmup_steps, {1, INT64_MAX}, "steps of linear warmup from 0");
  set.integer("constant_until", &constant_until, {0, INT64_MAX},
              "last step at the base rate; 0: the end of the warmup");
}

ScheduleRegistry& schedules() {
  static ScheduleRegistry registry = [] {
    ScheduleRegistry list("schedule");
    list.add<ConstantOptions>("constant", "constant learning rate", make_constant);
    list.add<DecayOptions>("cosine", "half a cosine from the base learning rate to final_factor times it", make_cosine);
    list.add<DecayOptions>("linear", "linear decay from the base learning rate to final_factor times it", make_linear);
    list.add<StepOptions>("step", "multiplied by gamma at each milestone", make_step);
    list.add<InverseSqrtOptions>("inverse_sqrt", "warmup, a constant phase, then decay as 1/sqrt(step)",
                                 make_inverse_sqrt);
    return list;
  }();
  return registry;
}

}  // namespace sparsight
