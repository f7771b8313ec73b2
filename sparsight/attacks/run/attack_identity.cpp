#include "sparsight/attacks/run/attack_identity.h"

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/moe/capacity.h"

namespace sparsight {
namespace {

// How the images come about, without where they are stored.
Json data_settings(const LoadedModel& loaded) {
  Json settings = loaded.config.at("data");
  settings.erase("root");
  settings["seed"] = loaded.config.at("run").at("seed");
  settings["transforms"] = loaded.config.at("transforms").at("eval");
  return settings;
}

Json attack_json(const AttackRequest& request, const AttackPlan& plan) {
  Json stages = Json::array();
  for (const CascadeStage& stage : plan.stages)
    stages.push_back({{"name", stage.name}, {"attack", stage.attack}, {"settings", stage.settings}});
  return {{"name", plan.attack},
          {"version", plan.version},
          {"norm", to_text(plan.threat.norm)},
          {"epsilon", plan.threat.epsilon},
          {"range", to_text(plan.threat.range)},
          {"seed", request.seed},
          {"noise", request.noise},
          {"stages", std::move(stages)}};
}

}  // namespace

Json attack_identity(const AttackRequest& request, const AttackPlan& plan, const AttackedRun& run,
                     const AttackedImages& images) {
  const LoadedModel& loaded = run.loaded;
  Json settings = Json::object();  // of the model: what changes its answers although its weights are the same
  for (const char* section : {"model", "moe", "experts", "router", "capacity", "losses"})
    if (loaded.config.contains(section)) settings[section] = loaded.config.at(section);
  Json identity{{"attack", attack_json(request, plan)},
                {"exact", request.exact},
                {"precision", request.precision},
                {"weights", request.weights},
                {"model", {{"fingerprint", run.fingerprint}, {"settings", std::move(settings)}}},
                {"data",
                 {{"name", printable(images.info().name)},
                  {"split", request.split},
                  {"images", images.size()},
                  {"classes", images.only_classes()},
                  {"settings", data_settings(loaded)}}}};
  if (images.size() < images.eligible()) identity["data"]["chosen"] = "evenly over classes";  // once: the first ones
  return identity;
}

Json attack_description(const AttackRequest& request, const AttackPlan& plan, const AttackedRun& run,
                        const AttackedImages& images) {
  const LoadedModel& loaded = run.loaded;
  Json environment = describe_environment();
  for (const char* key : {"started", "command"}) environment.erase(key);
  Json capacity = loaded.config.value("capacity", Json::object());
  if (!capacity.empty())
    capacity["effective_factor"] =
        capacity_factor(read_section<CapacityOptions>(loaded.config, "capacity"), /*training=*/false);
  return {{"model",
           {{"path", printable(request.path)},
            {"name", text(member(loaded.config, "model"), "name")},
            {"checkpoint", printable(loaded.path)},
            {"step", loaded.step},
            {"weights", loaded.weights},
            {"packed", request.weights.empty() ? Json() : Json(request.weights)},
            {"fingerprint", run.fingerprint},
            {"normalisation", to_text(loaded.model->pixel_statistics())},
            {"classes", loaded.shape.classes},
            {"capacity", capacity}}},
          {"data",
           {{"name", printable(images.info().name)},
            {"split", request.split},
            {"of", images.eligible()},
            {"classes", images.only_classes()},
            {"multi_label", images.info().multi_label}}},
          {"threat",
           {{"norm", to_text(plan.threat.norm)},
            {"epsilon", plan.threat.epsilon},
            {"range", to_text(plan.threat.range)},
            {"given", cat(printable(request.epsilon), " of pixels in ", request.range)}}},
          {"attack", attack_json(request, plan)},
          {"exact", request.exact},
          {"precision", request.precision},
          {"environment", std::move(environment)}};
}

}  // namespace sparsight
