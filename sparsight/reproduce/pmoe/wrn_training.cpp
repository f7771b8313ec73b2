#include "sparsight/reproduce/pmoe/wrn_training.h"

#include <filesystem>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/toml.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/metrics_log.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/train/run_config.h"
#include "sparsight/train/trainer.h"

namespace sparsight {
namespace {

Json resolved_config(const Json& sections) {
  static const Json kPaper = {
      {"loader", {{"batch", 128}, {"drop_last", false}}},
      {"train", {{"epochs", 50}, {"keep", "last"}}},
      {"optimizer", {{"name", "sgd"}, {"lr", 0.1}, {"momentum", 0}, {"nesterov", false}}},
      {"schedule", {{"name", "constant"}}},
  };
  Json all = kPaper;
  all.merge_patch(sections);
  Config config;
  for (const auto& [section, settings] : all.items())
    for (const auto& [key, value] : settings.items()) config.set(section, key, value, "figure");
  return resolve(config, config_sections());
}

// One line of the log for each epoch, and that of the test part.
void read_log(const std::vector<Json>& lines, WrnResult& result) {
  for (const Json& line : lines) {
    const std::string kind = line.at("kind");
    if (kind == "train") {
      result.epochs.push_back({line.at("accuracy").get<double>(), line.at("seconds").get<double>()});
    } else if (kind == "eval" && line.at("split") == "test") {
      result.accuracy = 100 * line.at("accuracy").get<double>();
      if (line.contains("worst_cell")) result.worst_cell = 100 * line.at("worst_cell").get<double>();
    }
  }
}

}  // namespace

WrnResult train_wrn(const Json& sections, const std::string& folder) {
  const Json config = resolved_config(sections);
  TrainingSetup setup = make_training_setup(config, /*fresh=*/true);
  setup.validation_loader.reset();  // nothing is chosen by it
  WrnResult result;
  result.steps_per_epoch = setup.train.log_every = setup.length.steps_per_epoch;
  const bool begun = std::filesystem::exists(folder + "/config.toml");
  RunFolder run = RunFolder::create(folder, begun ? IfExists::kResume : IfExists::kOverwrite);
  write_file_atomically(run.config(), to_toml(config));
  const std::string metrics = run.metrics();
  {
    Trainer trainer(std::move(setup), std::move(run));
    trainer.resume();
    if (trainer.run() == TrainingEnd::interrupted) fail("interrupted after step ", trainer.step());
  }
  read_log(read_metrics(metrics), result);
  std::filesystem::remove_all(folder);
  return result;
}

void set_model(Json& sections, const WrnModel& model) {
  sections["model"] = {{"name", "wide_resnet"},
                       {"widen", model.widen},
                       {"patch", model.faces ? 0 : 1},
                       {"norm_momentum", model.momentum}};
  if (!model.routed) return;
  sections["moe"] = {{"blocks", Json::array({-1})}, {"experts", model.faces ? 8 : 4}};
  sections["experts"] = {{"name", "norm_conv"},
                         {"channels", 64 * model.widen},
                         {"kernel", model.faces ? 3 : 1},
                         {"path", model.gathered ? "gathered" : "dense"},
                         {"momentum", model.momentum}};
  sections["router"] = {{"name", "patch_choice"}, {"patches", model.taken}, {"gate", "softmax_topl"}};
}

}  // namespace sparsight
