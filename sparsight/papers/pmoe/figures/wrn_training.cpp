#include "sparsight/papers/pmoe/figures/wrn_training.h"

namespace sparsight::pmoe {

WrnResult train_wrn(const Json& sections, const std::string& job_folder) {
  static const Json kPaper = {
      {"loader", {{"batch", 128}, {"drop_last", false}}},
      {"train", {{"epochs", 50}, {"keep", "last"}}},
      {"optimizer", {{"name", "sgd"}, {"lr", 0.1}, {"momentum", 0}, {"nesterov", false}}},
      {"schedule", {{"name", "constant"}}},
  };
  Json all = kPaper;
  all.merge_patch(sections);
  WrnResult result;
  result.training = train_in_job(all, job_folder);
  const Json& test = result.training.test;
  result.test_images = test.at("images");
  result.accuracy = 100 * test.at("accuracy").get<double>();
  if (test.contains("worst_cell")) result.worst_cell = 100 * test.at("worst_cell").get<double>();
  return result;
}

Json epoch_log(const JobTraining& training) {
  Json accuracy = Json::array(), seconds = Json::array();
  for (const TrainedEpoch& epoch : training.epochs) {
    accuracy.push_back(epoch.accuracy);
    seconds.push_back(epoch.seconds);
  }
  return {{"train_accuracy", accuracy}, {"seconds", seconds}};
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

}  // namespace sparsight::pmoe
