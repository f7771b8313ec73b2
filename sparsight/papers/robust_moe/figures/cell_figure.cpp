#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_claims.h"

namespace sparsight::robust_moe {
namespace {

constexpr double kTrainingEpsilon = 8;  // in 255ths, from which on adversarial training is claimed to help

std::vector<double> epsilons_of(const ResultTable& table) {
  std::vector<double> found;
  for (const Json& value : table.values_of("epsilon")) found.push_back(value.get<double>());
  return found;
}

}  // namespace

std::string curve_name(const VisionModel& model) {
  return model.training == kStandard ? model.name : cat(model.name, ", ", model.training);
}

std::vector<VisionModel> all_models(const CellOptions& options) {
  std::vector<VisionModel> models;
  for (const char* training : {kStandard, kAdversarial})
    for (const char* name : {kVit, kVmoe, kWideVit}) models.push_back({name, training, options.vision.experts});
  return models;
}

VisionModel model_of_curve(const std::string& curve, const CellOptions& options) {
  for (const VisionModel& model : all_models(options))
    if (curve_name(model) == curve) return model;
  SPARSIGHT_CHECK(false);
}

Claim vmoe_never_worse(const ResultTable& table, const std::string& than) {
  const CurvePair pair{.ours = than, .theirs = kVmoe, .series = "model", .x = "epsilon", .measure = "robust_error"};
  return above_everywhere(
      table, cat("the V-MoE's error is at most that of ", than == kVit ? "the ViT" : than, " at every epsilon"), pair,
      /*ties_count=*/true);
}

std::vector<Claim> claims_about_errors(const ResultTable& table) {
  std::vector<Claim> claims = {vmoe_never_worse(table, kVit), vmoe_never_worse(table, kWideVit),
                               never_falls(table, "the error does not fall as epsilon grows", "epsilon", {}, 2)};
  const std::vector<double> epsilons = epsilons_of(table);
  const double last = epsilons.empty() ? 0 : *std::max_element(epsilons.begin(), epsilons.end());
  std::vector<Margin> margins;
  for (const char* model : {kVit, kVmoe, kWideVit})
    margins.push_back({above({{"model", model}, {"epsilon", last}}, "robust_error", 99), cat("of ", model)});
  claims.push_back(judge(table, "without adversarial training the error reaches 99 % at the largest epsilon", margins,
                         {.ties = true, .unit = "points above 99 %"}));
  return claims;
}

std::vector<Claim> claims_about_adversarial_training(const ResultTable& table) {
  std::vector<Margin> clean, robust;
  for (const char* name : {kVit, kVmoe, kWideVit}) {
    const std::string standard = curve_name({name, kStandard}), adversarial = curve_name({name, kAdversarial});
    for (const double epsilon : epsilons_of(table)) {
      const Json ours = {{"model", adversarial}, {"epsilon", epsilon}},
                 theirs = {{"model", standard}, {"epsilon", epsilon}};
      const std::string where = cat("of ", name, " at ", epsilon);
      if (epsilon == 0) clean.push_back({difference_of(ours, theirs, "robust_error"), where});
      if (epsilon == kTrainingEpsilon) robust.push_back({difference_of(theirs, ours, "robust_error"), where});
    }
  }
  return {judge(table, "adversarial training raises the error without attack", clean),
          judge(table, "adversarial training lowers the error at 8/255", robust)};
}

Figure cell_figure(const std::string& name, const std::string& title, VisionData data) {
  Figure figure;
  figure.name = data == VisionData::mnist ? name + "_mnist" : name;
  figure.title = cat(title, ", ", vision_needs(data));
  figure.needs = vision_needs(data);
  figure.duration =
      "smoke 10 s, small 30 min, paper days, on 2 cores; less where other figures have trained the models";
  figure.data = {vision_choice(data)};
  figure.settings = settings_of(cell_options);
  figure.notes = {
      "Epsilon is the radius of an l-infinity ball in 255ths of the pixel range 0 to 1, whatever the figure. The paper "
      "gives no unit; its code has pixels in -1 to 1, where the same number is half of that.",
      "PGD: 40 steps of 2.5/40 epsilon from the image itself, each projected onto the ball and the range of pixels; "
      "one "
      "run; the strongest iterate. \"As published\": 40 steps of epsilon/40, neither projected nor clipped, the last "
      "iterate. AutoPGD: 100 steps from a random point on the surface, one run. All maximise the cross entropy, in "
      "fp32, without router noise.",
      "Misclassified images stay in the denominator: they count as errors at every epsilon. Intervals of one error are "
      "Wilson's; +- is the deviation over seeds, which change the weights, the order of the images and the attack.",
      "Without a capacity limit ([capacity] factor 0, the default) nothing is dropped, and images do not influence "
      "each other. With one, the images of a batch are attacked together.",
      "Differs from the paper: a V-MoE and ViTs of a few hundred thousand parameters, trained from random weights on "
      "the data of the figure, instead of pre-trained on 300 million private images. The V-MoE has every second MLP "
      "routed to k = 2 experts unless set; \"ViT, same cost\" has MLPs (k + 1) / 2 times as wide. Adversarial: "
      "fine-tuned on images under PGD of 10 steps at 8/255, with router noise.",
      "Trained models and measured cells are kept in the folder `models` beside the run folders, for all figures."};
  return figure;
}

}  // namespace sparsight::robust_moe
