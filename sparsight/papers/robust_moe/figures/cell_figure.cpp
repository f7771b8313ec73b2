#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/robust_moe/experiments/trial_claims.h"
#include "sparsight/papers/robust_moe/figures/attack_figures.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::robust_moe {
namespace {

constexpr double kTrainingEpsilon = 8;  // in 255ths, from which on adversarial training is claimed to help

std::vector<double> table_epsilons(const ResultTable& table) {
  std::vector<double> found;
  for (const Json& value : table.axis_values("epsilon")) found.push_back(value.get<double>());
  return found;
}

}  // namespace

double largest_epsilon(const ResultTable& table) {
  const std::vector<double> epsilons = table_epsilons(table);
  return epsilons.empty() ? 0 : *std::max_element(epsilons.begin(), epsilons.end());
}

std::string curve_name(const VisionModel& model) {
  return model.training == kStandard ? model.name : cat(model.name, ", ", model.training);
}

std::vector<VisionModel> all_models(const CellOptions& options) {
  std::vector<VisionModel> models;
  for (const char* training : {kStandard, kAdversarial})
    for (const char* name : {kDenseModel, kMoeModel, kWideModel})
      models.push_back({name, training, options.vision.experts});
  return models;
}

VisionModel model_of_curve(const std::string& curve, const CellOptions& options) {
  for (const VisionModel& model : all_models(options))
    if (curve_name(model) == curve) return model;
  SPARSIGHT_CHECK(false);
}

Claim vmoe_never_worse(const ResultTable& table, const std::string& than) {
  const CurvePair pair{.ours = than, .theirs = kMoeModel, .series = "model", .x = "epsilon", .measure = "robust_error"};
  return above_everywhere(
      table,
      cat("the MoE's error is at most that of ",
          than == kDenseModel ? "the dense model" : "the dense model of its cost", " at every epsilon"),
      pair,
      /*ties_count=*/true);
}

std::vector<Claim> claims_about_errors(const ResultTable& table) {
  std::vector<Claim> claims = {
      vmoe_never_worse(table, kDenseModel), vmoe_never_worse(table, kWideModel),
      never_falls(table, "the error does not fall as epsilon grows", "epsilon", "robust_error", 2)};
  const double last = largest_epsilon(table);
  std::vector<Margin> margins;
  for (const char* model : {kDenseModel, kMoeModel, kWideModel})
    margins.push_back({above({{"model", model}, {"epsilon", last}}, "robust_error", 99), cat("of ", model)});
  claims.push_back(judge(table, "without adversarial training the error reaches 99 % at the largest epsilon", margins,
                         {.ties = true, .unit = "points above 99 %"}));
  return claims;
}

std::vector<Claim> claims_about_adversarial_training(const ResultTable& table) {
  std::vector<Margin> clean, robust;
  for (const char* name : {kDenseModel, kMoeModel, kWideModel}) {
    const std::string standard = curve_name({name, kStandard}), adversarial = curve_name({name, kAdversarial});
    for (const double epsilon : table_epsilons(table)) {
      const Json ours = {{"model", adversarial}, {"epsilon", epsilon}},
                 theirs = {{"model", standard}, {"epsilon", epsilon}};
      const std::string where = cat("of ", name, " at ", epsilon);
      if (epsilon == 0) clean.push_back({row_difference(ours, theirs, "robust_error"), where});
      if (epsilon == kTrainingEpsilon) robust.push_back({row_difference(theirs, ours, "robust_error"), where});
    }
  }
  return {judge(table, "adversarial training raises the error without attack", clean),
          judge(table, "adversarial training lowers the error at 8/255", robust)};
}

std::vector<Measure> drop_measures() {
  return {{"dropped", "dropped assignments, mean of the layers", 3}, {"attacked_dropped", "under attack", 3}};
}

std::vector<Measure> balance_measures() {
  return {{"dropped", "dropped assignments", 3},
          {"attacked_dropped", "under attack", 3},
          {"entropy", "usage entropy / ln E", 3},
          {"attacked_entropy", "under attack", 3},
          {"load_cv2", "squared CV of the load", 3},
          {"attacked_load_cv2", "under attack", 3},
          {"importance_cv2", "squared CV of the importance", 3},
          {"attacked_importance_cv2", "under attack", 3},
          {"redundancy", "distance of outputs where experts changed", 3},
          {"redundancy_random", "with random experts", 3}};
}

std::vector<std::string> cell_notes(const CellOptions& options) {
  const VisionOptions& vision = options.vision;
  const int64_t steps = options.pgd_steps;
  const std::string limit =
      vision.capacity == 0
          ? "No capacity limit ([capacity] factor 0) but where a row has one: without a limit nothing is dropped, and "
            "images do not influence each other."
          : cat("[capacity] factor ", vision.capacity,
                " in training, and under attack but where a row has another: the images of a batch (",
                options.attack_batch,
                " at most, unless the figure says otherwise) share the experts' capacity and are attacked together.");
  return {
      cat("PGD: ", steps, " steps of 2.5/", steps,
          " epsilon from the image itself, each projected onto the ball and the range of pixels; one run; the "
          "strongest iterate. \"As published\": ",
          steps, " steps of epsilon/", steps,
          ", neither projected nor clipped, the last iterate. AutoPGD: ", options.apgd_steps,
          " steps from a random point on the surface, one run; a misclassified iterate, if there is any, and images "
          "that are misclassified as they are stay so. At epsilon 0 one step. All maximise the cross entropy, unless "
          "the figure says otherwise, in fp32, without router noise."),
      limit,
      cat("Differs from the paper: ", vision_description(vision), ". All are trained from random weights for ",
          vision.epochs,
          " epochs on the data of the figure, instead of pre-trained on 300 million private images. Adversarial: "
          "fine-tuned on images under PGD of ",
          vision.adversarial_steps, " steps at ", shown_number(vision.adversarial_epsilon),
          "/255, with router noise.")};
}

Figure cell_figure(const std::string& name, const std::string& title, VisionData data) {
  Figure figure;
  figure.name = name + vision_suffix(data);
  figure.title = cat(title, ", ", vision_needs(data));
  figure.needs = vision_needs(data);
  figure.duration =
      "smoke 10 s, small 30 min, paper days, on 2 cores; less where other figures have trained the models";
  figure.data = {vision_choice(data)};
  set_options(figure, cell_defaults<CellOptions>(data), [](const CellOptions&) { return std::vector<std::string>{}; });
  figure.notes = {
      "Epsilon is the radius of an l-infinity ball in 255ths of the pixel range 0 to 1, whatever the figure. The paper "
      "gives no unit; its code has pixels in -1 to 1, where the same number is half of that.",
      "Misclassified images stay in the denominator: they count as errors at every epsilon. Seeds change the weights, "
      "the order of the images and the attack.",
      "Trained models and measured cells are kept in the folder `models` beside the run folders, for all figures."};
  return figure;
}

}  // namespace sparsight::robust_moe
