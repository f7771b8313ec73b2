#include "sparsight/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sparsight {
namespace {

int64_t warmup_length(const WarmupOptions& options, TrainingLength length) {
  if (options.warmup_steps > 0 && options.warmup_epochs > 0)
    fail_usage("schedule.warmup_epochs and schedule.warmup_steps both set the length of the warm-up; set one to 0");
  const int64_t steps = options.warmup_steps > 0
                            ? options.warmup_steps
                            : std::llround(options.warmup_epochs * static_cast<double>(length.steps_per_epoch));
  if (options.warmup_share >= 1) return steps;
  return std::min<int64_t>(steps, std::llround(options.warmup_share * static_cast<double>(length.total_steps)));
}

double warmup_factor(double from, int64_t step, int64_t warmup) {
  if (from == 0) return static_cast<double>(step + 1) / static_cast<double>(warmup);
  return from + (1 - from) * static_cast<double>(step) / static_cast<double>(warmup);
}

// How far a training is at a step.
struct TrainingShare {
  double all;           // fraction of all steps
  double after_warmup;  // fraction of the steps after the warm-up
  double epoch;         // epochs since the start
};

// Puts a linear warm-up before `after`.
Schedule with_warmup(const WarmupOptions& options, TrainingLength length,
                     const std::function<double(const TrainingShare&)>& after) {
  const int64_t warmup = warmup_length(options, length);
  return [=, from = options.warmup_from, per_epoch = options.per_epoch](int64_t at) {
    const int64_t step = per_epoch ? at - at % length.steps_per_epoch : at;
    if (step < warmup) return warmup_factor(from, step, warmup);
    const auto fraction = [](int64_t part, int64_t whole) {
      return std::min(1.0, static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole)));
    };
    return after({fraction(step, length.total_steps), fraction(step - warmup, length.total_steps - warmup),
                  static_cast<double>(step) / static_cast<double>(length.steps_per_epoch)});
  };
}

double decayed_share(const DecayOptions& options, const TrainingShare& progress) {
  return options.decay_from == "start" ? progress.all : progress.after_warmup;
}

Schedule make_constant(const ConstantOptions& options, TrainingLength length) {
  return with_warmup(options, length, [](const TrainingShare&) { return 1.0; });
}

Schedule make_cosine(const DecayOptions& options, TrainingLength length) {
  return with_warmup(options, length, [=](const TrainingShare& progress) {
    const double fraction = decayed_share(options, progress);
    return options.final_factor + (1 - options.final_factor) * 0.5 * (1 + std::cos(std::numbers::pi * fraction));
  });
}

Schedule make_linear(const DecayOptions& options, TrainingLength length) {
  return with_warmup(options, length, [=](const TrainingShare& progress) {
    return 1 - (1 - options.final_factor) * decayed_share(options, progress);
  });
}

Schedule make_step(const StepOptions& options, TrainingLength length) {
  return with_warmup(options, length, [=](const TrainingShare& progress) {
    const auto passed = std::count_if(options.milestones.begin(), options.milestones.end(),
                                      [&](double milestone) { return progress.epoch >= milestone; });
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
  set.real("warmup_epochs", &warmup_epochs, {0, 1e6}, "epochs of linear warmup");
  set.integer("warmup_steps", &warmup_steps, {0, INT64_MAX}, "steps of linear warmup, instead of warmup_epochs");
  set.real("warmup_share", &warmup_share, {0, 1},
           "the warmup is at most this share of the training, so that it shortens with it");
  set.real("warmup_from", &warmup_from, {0, 1},
           "learning rate of the first step, as a fraction of the base rate; 0: 1 / the number of warmup steps");
  set.flag("per_epoch", &per_epoch, "change the learning rate at the first step of an epoch only");
}

void DecayOptions::declare(OptionSet& set) {
  WarmupOptions::declare(set);
  set.real("final_factor", &final_factor, {0, 1}, "learning rate at the end, as a fraction of the base rate");
  set.choice("decay_from", &decay_from, {"warmup", "start"},
             "where the decay begins: after the warmup, or with the training, with the warmup in place of its first "
             "steps (DeiT, timm)");
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
