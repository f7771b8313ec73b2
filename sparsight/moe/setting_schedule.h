// Settings of MoE layers that change during training, [[moe.schedule]] of a configuration: k from 4 to 1, noise or
// capacity that decay. A pure function of the training progress, so that nothing is saved for resuming.
#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "sparsight/core/options.h"

namespace sparsight {

struct SettingSchedule {
  std::string setting;  // "router.k", "router.noise", "capacity.factor", "losses.switch"
  double from = 0, to = 0;
  double begin = 0, end = 1;  // fractions of the training between which it changes
  std::string shape = "linear";
  void declare(OptionSet& set);
  // progress: 0 to 1. Integers are rounded to the nearest by the setter.
  double at(double progress) const;
};

// From [moe] schedule. Raises UsageError for an invalid schedule.
std::vector<SettingSchedule> read_setting_schedules(const Json& resolved);

// Raises UsageError where a schedule does not fit the model: a setting that no layer has or that cannot change, or a
// first or last value that the setting or a layer's router does not allow. Leaves the settings at progress 0.
void check_setting_schedules(torch::nn::Module& model, const std::vector<SettingSchedule>& schedules);

// Sets every scheduled setting of every MoE layer and router of the model. Raises UsageError for a setting that no
// layer has or that cannot change, listing those that can, and for a value that the setting does not allow.
void apply_setting_schedules(torch::nn::Module& model, const std::vector<SettingSchedule>& schedules, double progress);

}  // namespace sparsight
