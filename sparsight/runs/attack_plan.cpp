#include "sparsight/runs/attack_plan.h"

#include <algorithm>
#include <cmath>

#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr const char* kAttackSection = "attack";

// The settings of --set attack.KEY=VALUE; the other overrides are left in `rest`.
Json attack_settings(const std::vector<std::string>& overrides, std::vector<std::string>& rest) {
  Config config;
  for (const std::string& assignment : overrides) {
    if (assignment.starts_with(cat(kAttackSection, ".")))
      config.set(assignment);
    else
      rest.push_back(assignment);
  }
  return config.tree().is_object() ? config.tree().value(kAttackSection, Json::object()) : Json::object();
}

// All settings of an attack: its defaults with `given`.
Json with_defaults(const std::string& attack, const Json& given) {
  Json all;
  attacks().get(attack).describe([&](OptionSet& set) {
    assign(set, given, kAttackSection);
    all = values(set);
  });
  return all;
}

bool stage_has(const CascadeStage& stage, const std::string& setting) {
  return with_defaults(stage.attack, Json::object()).contains(setting);
}

void plan_cascade(AttackPlan& plan, Json given) {
  const Json version = given.value("version", Json("standard"));
  if (!version.is_string()) fail_usage("attack.version must be standard, plus or rand, got ", shown(version));
  plan.version = version.get<std::string>();
  given.erase("version");
  plan.stages = cascade_stages(plan.version);
  for (const auto& [key, value] : given.items()) {
    bool found = false;
    for (CascadeStage& stage : plan.stages)
      if (stage_has(stage, key)) stage.settings[key] = value, found = true;
    if (!found)
      fail_usage("unknown setting attack.", printable(key),
                 ": the cascade has version and the settings of its stages, ", "such as steps, targets and queries");
    plan.notes.push_back(cat("not the ", plan.version, " cascade of AutoAttack: ", printable(key), " = ",
                             printable(shown(value)), " in all stages that have it"));
  }
}

// Whether the stage's attack uses gradients, and averages them.
bool uses_gradients(const CascadeStage& stage) {
  return attacks().make(stage.attack, stage.settings, stage.name, {})->needs_gradients();
}

std::vector<std::string> gradient_free_attacks() {
  std::vector<std::string> names;
  for (const std::string& name : attacks().names())
    if (!attacks().make(name, Json::object(), name, {})->needs_gradients()) names.push_back(name);
  return names;
}

}  // namespace

AttackPlan plan_attack(const AttackRequest& request) {
  AttackPlan plan;
  plan.attack = request.attack;
  Json given = attack_settings(request.overrides, plan.model_overrides);
  if (request.precision != "fp32" && request.precision != "fp64")
    fail_usage("the precision \"", printable(request.precision), "\": must be fp32 or fp64");
  if (request.precision == "fp64" && !request.weights.empty())
    fail_usage("--precision fp64 runs the weights as they were trained, not packed as ", printable(request.weights),
               "; leave out --precision or --weights");
  if (request.norm != "linf" && request.norm != "l2")
    fail_usage("the norm \"", printable(request.norm), "\": must be linf or l2");
  plan.threat = make_threat({request.norm, request.epsilon, request.range});
  if (plan.threat.norm == Norm::linf && plan.threat.epsilon >= 1)
    fail_usage("epsilon ", printable(request.epsilon), " of pixels in ", request.range,
               " lets every pixel have any value; give it in units of the range (", printable(request.epsilon),
               "/255?), or name another range with --range");
  if (request.attack == "autoattack" || request.attack == "cascade") {
    given.erase("batch_size");
    plan_cascade(plan, given);
  } else {
    attacks().get(request.attack);
    plan.stages = {{request.attack, request.attack, given}};
  }
  for (CascadeStage& stage : plan.stages) {
    stage.settings = with_defaults(stage.attack, stage.settings);
    uses_gradients(stage);  // constructs it, which checks how its settings fit together
  }
  return plan;
}

void fit_to_classes(AttackPlan& plan, int64_t classes) {
  for (CascadeStage& stage : plan.stages) {
    if (classes < 3 && stage.settings.value("loss", "") == "dlr") {
      plan.notes.push_back(
          cat(stage.name, " maximises the margin: the dlr loss needs 3 classes, the model has ", classes));
      stage.settings["loss"] = "margin";
    }
    if (stage.attack != "apgd_t" || classes >= 4) continue;
    plan.notes.push_back(cat(stage.name, " is replaced by apgd on the margin: the targeted dlr loss needs 4 classes, ",
                             "the model has ", classes));
    const Json was = stage.settings;
    stage = {"apgd-margin", "apgd", with_defaults("apgd", {{"loss", "margin"}})};
    for (const char* key : {"steps", "restarts", "passes"}) stage.settings[key] = was.at(key);
  }
}

void check_stages(const AttackPlan& plan, const std::string& packed, bool randomised) {
  for (const CascadeStage& stage : plan.stages) {
    if (!uses_gradients(stage)) continue;
    if (!packed.empty())
      fail_usage("weights packed as ", packed, " have no gradients, which ", stage.name,
                 " needs; attack them without gradients: --attack ", join(gradient_free_attacks(), " or --attack "),
                 ", or leave out --weights");
    if (randomised && stage.settings.value("passes", int64_t{1}) == 1)
      fail_usage("the routers' noise makes passes differ, so ", stage.name,
                 " needs gradients averaged over several: --attack autoattack --set attack.version=rand, or apgd or "
                 "pgd with --set attack.passes=20");
  }
}

void check_radius(const ThreatModel& threat, int64_t values) {
  if (threat.norm == Norm::l2 && threat.epsilon >= std::sqrt(static_cast<double>(values)))
    fail_usage("the l2 epsilon ", threat.epsilon, " lets every pixel of an image of ", values,
               " values have any value; it must be below ", std::sqrt(static_cast<double>(values)));
}

std::string plain_name(std::string text) {
  std::ranges::replace_if(
      text,
      [](char c) {
        return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' && c != '-' && c != '_';
      },
      '_');
  return text;
}

std::string attack_name(const AttackRequest& request) {
  std::string epsilon = request.epsilon;
  std::ranges::replace(epsilon, ',', '-');
  std::string name = request.attack + "_" + request.norm + "_" + epsilon;
  if (request.range != "0..1") name += "_of_" + request.range;
  if (request.noise) name += "_noise";
  if (!request.weights.empty()) name += "_" + request.weights;
  if (request.precision != "fp32") name += "_" + request.precision;
  return plain_name(std::move(name));
}

}  // namespace sparsight
