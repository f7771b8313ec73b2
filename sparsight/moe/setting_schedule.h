// Settings of MoE layers that change while training: k from 4 to 1, noise or capacity that fade. [[moe.schedule]] of a
// configuration; a pure function of how far the training has come, so that a resumed run needs nothing saved.
#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "sparsight/core/options.h"

namespace sparsight {

struct SettingSchedule {
  std::string setting;  // "router.k", "router.noise", "capacity.factor", "losses.switch"
  double from = 0, to = 0;
  double begin = 0, end = 1;  // shares of the training between which it moves
  std::string shape = "linear";
  void declare(OptionSet& set);
  // progress: 0 to 1. Integers are rounded to the nearest by the setter.
  double at(double progress) const;
};

// Of [moe] schedule. Raises UsageError for what is no schedule.
std::vector<SettingSchedule> read_setting_schedules(const Json& resolved);

// Raises UsageError where a schedule does not fit the model: a setting that no layer has or that cannot change, or a
// value at either end that a layer's router, or the setting, cannot have. Leaves the settings at progress 0.
void check_setting_schedules(torch::nn::Module& model, const std::vector<SettingSchedule>& schedules);

// Sets every scheduled setting of every MoE layer and router of the model. Raises UsageError for a setting that no
// layer has or that cannot change, naming those that can, and for a value that the setting cannot have.
void apply_setting_schedules(torch::nn::Module& model, const std::vector<SettingSchedule>& schedules, double progress);

}  // namespace sparsight
