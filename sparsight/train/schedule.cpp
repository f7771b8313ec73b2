#include "sparsight/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sparsight {
namespace {

// Puts a linear warm-up before `after`, which sees its progress as a fraction of the steps that follow the warm-up and
// as epochs since the start.
Schedule with_warmup(const WarmupOptions& options, TrainingLength length,
                     std::function<double(double fraction, double epoch)> after) {
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

}  // namespace

void WarmupOptions::declare(OptionSet& set) {
  set.real("warmup_epochs", &warmup_epochs, {0, 1e6}, "epochs of linear warm-up from 0");
}

void DecayOptions::declare(OptionSet& set) {
  WarmupOptions::declare(set);
  set.real("final_factor", &final_factor, {0, 1}, "factor at the end of training");
}

void StepOptions::declare(OptionSet& set) {
  WarmupOptions::declare(set);
  set.reals("milestones", &milestones, {0, 1e9}, "epochs at which the rate is multiplied by gamma");
  set.real("gamma", &gamma, {0, 1}, "factor of each milestone");
}

const ScheduleRegistry& schedules() {
  static const ScheduleRegistry registry = [] {
    ScheduleRegistry list("schedule");
    list.add<ConstantOptions>("constant", "the base rate throughout", make_constant);
    list.add<DecayOptions>("cosine", "half a cosine from the base rate to final_factor", make_cosine);
    list.add<DecayOptions>("linear", "a straight line from the base rate to final_factor", make_linear);
    list.add<StepOptions>("step", "multiplied by gamma at each milestone", make_step);
    return list;
  }();
  return registry;
}

}  // namespace sparsight
