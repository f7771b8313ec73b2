#include "sparsight/attacks/run/attack_plan.h"

#include <algorithm>
#include <functional>

#include "sparsight/attacks/register_attacks.h"
#include "sparsight/attacks/run/named_classes.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

constexpr const char *kAttackSection = "attack", *kPassesSetting = "passes", *kTargetSetting = "target",
                     *kDistancesSetting = "distances";

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

bool uses_gradients(const CascadeStage& stage) {
  return attacks().make(stage.attack, stage.settings, stage.name, {})->needs_gradients();
}

bool takes_several_labels(const CascadeStage& stage) {
  return attacks().make(stage.attack, stage.settings, stage.name, {})->takes_several_labels();
}

bool takes_target(const CascadeStage& stage) {
  return attacks().make(stage.attack, stage.settings, stage.name, {})->target() != nullptr;
}

// The target of --target or of --set attack.target, which is one setting; "" without one. It is taken out of `given`.
std::string taken_target(const AttackRequest& request, Json& given) {
  std::string target = request.target;
  if (given.contains(kTargetSetting)) {
    const Json& value = given[kTargetSetting];
    if (!target.empty()) fail_usage("--target and --set attack.target are the same setting; give one of them");
    if (!value.is_string() && !value.is_number_integer())
      fail_usage("attack.target must be a class, least_likely or random, got ", printable(shown(value)));
    target = value.is_string() ? value.get<std::string>() : value.dump();
    given.erase(kTargetSetting);
    if (target.empty()) fail_usage("attack.target is empty; give a class, least_likely, random or none");
  }
  return target == TargetOption().target ? "" : target;
}

// The names of the attacks for which `holds` of their default settings.
std::vector<std::string> attacks_where(const std::function<bool(const CascadeStage&)>& holds) {
  std::vector<std::string> names;
  for (const std::string& name : attacks().names())
    if (holds({name, name, Json::object()})) names.push_back(name);
  return names;
}

void check_stage_norm(const AttackPlan& plan, const CascadeStage& stage) {
  const auto takes_norm = [&](const CascadeStage& some) {
    return attacks().make(some.attack, some.settings, some.name, {})->takes_norm(plan.threat.norm);
  };
  if (!takes_norm(stage))
    fail_usage(plan.is_cascade() ? cat(plan.attack, ", with its ", stage.name, ",") : stage.name,
               " does not take the norm ", to_text(plan.threat.norm), "; use --attack ",
               join(attacks_where(takes_norm), " or --attack "));
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
  plan.threat = make_threat({request.norm, request.epsilon, request.range});
  plan.target = taken_target(request, given);
  if (request.attack == "autoattack" || request.attack == "cascade") {
    if (given.contains("batch_size"))
      fail_usage("attack.batch_size is a setting of the library's cascade; the program has --batch");
    if (given.contains(kDistancesSetting))
      fail_usage("attack.", kDistancesSetting, " is of single attacks, since a cascade attacks what is left: --attack ",
                 join(attacks_where([](const CascadeStage& other) { return stage_has(other, kDistancesSetting); }),
                      " or --attack "));
    plan_cascade(plan, given);
  } else {
    std::vector<std::string> names = attacks().names();
    names.insert(names.begin(), "autoattack");
    find_position(request.attack, names, "attack");
    plan.stages = {{request.attack, request.attack, given}};
  }
  for (CascadeStage& stage : plan.stages) {
    stage.settings = with_defaults(stage.attack, stage.settings);
    uses_gradients(stage);  // constructs it, which checks how its settings fit together
    check_stage_norm(plan, stage);
  }
  if (!plan.targeted()) return plan;
  check_takes_target(plan);
  plan.stages.at(0).settings[kTargetSetting] = plan.target;
  return plan;
}

void check_takes_target(const AttackPlan& plan) {
  const auto others = [] { return join(attacks_where(takes_target), " or --attack "); };
  if (plan.is_cascade())
    fail_usage(plan.attack, " is untargeted: any wrong class is a success of its attacks; to target a class use ",
               "--attack ", others());
  if (!takes_target(plan.stages.at(0)))
    fail_usage(plan.attack, " cannot be targeted at a class of choice: it goes through the classes itself, and any ",
               "wrong one is a success; use --attack ", others());
}

void fit_to_target(AttackPlan& plan, const std::vector<std::string>& classes) {
  if (!plan.targeted() || !is_one_class(plan.target)) return;
  plan.target_class = class_number(plan.target, classes);
  plan.target_name = classes.at(static_cast<size_t>(plan.target_class));
  plan.stages.at(0).settings[kTargetSetting] = std::to_string(plan.target_class);
}

Json target_json(const AttackPlan& plan) {
  const bool one = plan.target_class >= 0;
  return {{"given", printable(plan.target)},
          {"class", one ? Json(plan.target_class) : Json()},
          {"name", one ? Json(printable(plan.target_name)) : Json()}};
}

void fit_to_labels(AttackPlan& plan, bool several_labels) {
  const auto refuse = [](const std::string& attack) {
    fail_usage(attack, " is for images with one label, but these have several; use --attack ",
               join(attacks_where(takes_several_labels), " or --attack "));
  };
  if (several_labels && plan.is_cascade()) refuse(plan.attack);
  if (several_labels && plan.targeted())
    fail_usage("a targeted attack moves images from one class to another, but these have several labels each; ",
               "leave out the target");
  for (CascadeStage& stage : plan.stages) {
    const std::string loss = stage.settings.value("loss", "");
    if (!loss.empty()) stage.settings["loss"] = chosen_attack_loss(loss, several_labels);
    if (!several_labels) continue;
    if (!takes_several_labels(stage)) refuse(stage.name);
    if (!loss.empty() && !attack_loss_takes_several(loss))
      fail_usage("attack.loss = ", loss,
                 " is for images with one label, but these have several; use sigmoid_cross_entropy",
                 " or margin, or leave it out");
  }
}

void fit_to_classes(AttackPlan& plan, int64_t classes) {
  for (CascadeStage& stage : plan.stages) {
    const int64_t needed = plan.targeted() ? 4 : 3;
    if (classes < needed && stage.settings.value("loss", "") == "dlr") {
      plan.notes.push_back(cat(stage.name, " maximises the margin: the ", plan.targeted() ? "targeted " : "",
                               "dlr loss needs ", needed, " classes, the model has ", classes));
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

bool measures_distances(const AttackPlan& plan) {
  const CascadeStage& stage = plan.stages.at(0);
  return !plan.is_cascade() && attacks().make(stage.attack, stage.settings, stage.name, {})->measures_distances();
}

bool measures_beyond_epsilon(const AttackPlan& plan) {
  return measures_distances(plan) && plan.stages.at(0).settings.value(kDistancesSetting, false);
}

bool has_gradients(const AttackPlan& plan) { return std::ranges::any_of(plan.stages, uses_gradients); }

void check_gradients(const AttackPlan& plan, const std::string& packed) {
  for (const CascadeStage& stage : plan.stages)
    if (!packed.empty() && uses_gradients(stage))
      fail_usage("weights packed as ", packed, " have no gradients, which ", stage.name,
                 " needs; attack them without gradients: --attack ",
                 join(attacks_where([](const CascadeStage& other) { return !uses_gradients(other); }), " or --attack "),
                 ", or leave out --weights");
}

void check_passes(const AttackPlan& plan, bool randomised) {
  for (const CascadeStage& stage : plan.stages)
    if (randomised && stage.settings.value(kPassesSetting, int64_t{1}) == 1)
      fail_usage("the routers' random numbers make passes differ, so ", stage.name,
                 " needs the mean of several: --attack autoattack --set attack.version=rand, or --set attack.",
                 kPassesSetting, "=20 with --attack ",
                 join(attacks_where([](const CascadeStage& other) { return stage_has(other, kPassesSetting); }), ", "));
}

void add_missing_settings(Json& attack) {
  if (!member(attack, "stages").is_array()) return;
  for (Json& stage : attack["stages"]) {
    const std::string name = text(stage, "attack");
    if (!member(stage, "settings").is_object() || std::ranges::count(attacks().names(), name) == 0) continue;
    Json settings = with_defaults(name, Json::object());
    settings.update(stage["settings"]);
    stage["settings"] = std::move(settings);
  }
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
  if (!request.target.empty() && request.target != TargetOption().target) name += "_to_" + request.target;
  return plain_name(std::move(name));
}

}  // namespace sparsight
