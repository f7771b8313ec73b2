// Learning rate schedules: the factor on the optimiser's base rate at each step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sparsight/core/registry.h"

namespace sparsight {

// step 0 .. total_steps-1 -> factor in [0, 1]
using Schedule = std::function<double(int64_t step)>;

struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t total_steps = 1;
};

// Linear warm-up, for the schedules that depend on the length of the training. Its factor is (s + 1) / W at step s of W
// steps, or warmup_from + (1 - warmup_from) s / W where it starts above 0, as timm's (warmup_lr_init).
struct WarmupOptions {
  double warmup_epochs = 0;
  int64_t warmup_steps = 0;  // instead of warmup_epochs
  double warmup_share = 1;   // the warm-up is at most this share of the training
  double warmup_from = 0;
  bool per_epoch = false;  // every step has the factor of the first one of its epoch
  void declare(OptionSet& set);
};

struct ConstantOptions : WarmupOptions {};

// Ends at `final_factor` after the last step, along half a cosine or a straight line. It begins after the warm-up, or
// (decay_from = "start") with the training, where the warm-up replaces its first steps: DeiT's schedule, and timm's.
struct DecayOptions : WarmupOptions {
  double final_factor = 0;
  std::string decay_from = "warmup";
  void declare(OptionSet& set);
};

// Multiplies by `gamma` at each milestone.
struct StepOptions : WarmupOptions {
  std::vector<double> milestones;  // epochs
  double gamma = 0.1;
  void declare(OptionSet& set);
};

// t / warmup up to step t = warmup (counted from 1), 1 up to step `constant_until`, sqrt(constant_until / t) after it:
// Shazeer et al. 2017, appendices C (0 constant steps) and E. Unlike the others it does not depend on the length of the
// training. constant_until = 0 means `warmup_steps`.
struct InverseSqrtOptions {
  int64_t warmup_steps = 1000;
  int64_t constant_until = 0;
  void declare(OptionSet& set);
};

using ScheduleRegistry = Registry<Schedule, TrainingLength>;

// "constant", "cosine", "linear", "step", "inverse_sqrt"
ScheduleRegistry& schedules();

}  // namespace sparsight
