#include "sparsight/moe/setting_schedule.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/register_moe.h"

namespace sparsight {
namespace {

// The live settings of one router under their full names, "router.k".
OptionSet live_settings(HasRouter& owner) {
  OptionSet all;
  owner.declare_settings([&](const std::string& section, OptionSet& set) {
    for (Option option : set.options()) {
      if (!option.live) continue;
      option.name = section + "." + option.name;
      all.include(std::move(option));
    }
  });
  return all;
}

void set_value(const Option& option, double value) {
  try {
    option.set(option.type == "integer" ? Json(std::llround(value)) : Json(value));
  } catch (const UsageError& error) {
    fail_usage("[[moe.schedule]] ", option.name, error.what());
  }
}

// Raises UsageError if the router's current settings contradict each other or the number of experts.
void check_router(Router& router) {
  if (router.registered_name().empty()) return;
  OptionSet set;
  router.declare(set);
  routers().make(router.registered_name(), values(set), "router", {1, router.registered_shape().experts});
}

}  // namespace

void SettingSchedule::declare(OptionSet& set) {
  set.text("setting", &setting, "the setting, with its section");
  set.real("from", &from, {-1e9, 1e9}, "its value until begin");
  set.real("to", &to, {-1e9, 1e9}, "its value from end on");
  set.real("begin", &begin, {0, 1}, "fraction of the training at which it starts to change");
  set.real("end", &end, {0, 1}, "fraction of the training at which it stops changing");
  set.choice("shape", &shape, {"linear", "cosine", "step"},
             "shape of the change: a straight line, half a cosine, or a jump at end");
}

double SettingSchedule::at(double progress) const {
  if (progress >= end) return to;
  if (progress <= begin || shape == "step") return from;
  const double share = (progress - begin) / (end - begin);
  return from + (to - from) * (shape == "cosine" ? (1 - std::cos(M_PI * share)) / 2 : share);
}

std::vector<SettingSchedule> read_setting_schedules(const Json& resolved) {
  std::vector<SettingSchedule> schedules;
  for (const Json& entry : resolved.at("moe").value("schedule", Json::array())) {
    SettingSchedule schedule;
    OptionSet set;
    schedule.declare(set);
    assign(set, entry, "moe.schedule");
    for (const char* needed : {"setting", "from", "to"})
      if (!entry.contains(needed)) fail_usage("an entry of moe.schedule needs ", needed, "; got ", shown(entry));
    if (schedule.begin > schedule.end)
      fail_usage("moe.schedule of ", printable(schedule.setting), ": begin ", schedule.begin, " is after end ",
                 schedule.end, "; lower begin or raise end");
    schedules.push_back(std::move(schedule));
  }
  return schedules;
}

void check_setting_schedules(torch::nn::Module& model, const std::vector<SettingSchedule>& schedules) {
  if (schedules.empty()) return;
  for (const double progress : {1.0, 0.0}) {
    apply_setting_schedules(model, schedules, progress);
    for_each_router_owner(model, [](HasRouter& owner) { check_router(*owner.own_router()); });
  }
}

void apply_setting_schedules(torch::nn::Module& model, const std::vector<SettingSchedule>& schedules, double progress) {
  if (schedules.empty()) return;
  std::vector<std::string> known;
  std::vector<bool> found(schedules.size(), false);
  for_each_router_owner(model, [&](HasRouter& owner) {
    const OptionSet settings = live_settings(owner);
    for (const Option& option : settings.options())
      if (std::ranges::find(known, option.name) == known.end()) known.push_back(option.name);
    for (size_t i = 0; i < schedules.size(); ++i)
      if (const Option* option = settings.find(schedules[i].setting)) {
        set_value(*option, schedules[i].at(progress));
        found[i] = true;
      }
  });
  for (size_t i = 0; i < schedules.size(); ++i)
    if (!found[i])
      fail_usage("[[moe.schedule]] ", printable(schedules[i].setting), " cannot follow a schedule in this model",
                 suggestion(schedules[i].setting, known));
}

}  // namespace sparsight
