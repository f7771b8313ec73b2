#include "sparsight/attacks/cascade_warnings.h"

#include <algorithm>

#include <ATen/TensorOperators.h>

#include "sparsight/attacks/routed/objective.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

constexpr int kComparedPasses = 5;
constexpr double kLogitTolerance = 1e-4;        // between unit-normalised logits of two passes
constexpr double kProbabilityTolerance = 1e-5;  // of sums of outputs from 1
constexpr double kSquareGain = 0.002;           // of all images

at::Tensor compute_logits(AttackedModel& model, const AttackBatch& batch, uint64_t pass) {
  return model.forward(batch.pixels, {batch.image, first_step("cascade.warnings", 0) + pass}).logits;
}

bool passes_differ(AttackedModel& model, const AttackBatch& batch, const at::Tensor& first) {
  const auto unit = [](const at::Tensor& z) { return z / (z.square().sum(1, true).sqrt() + 1e-10); };
  for (uint64_t pass = 1; pass < kComparedPasses; ++pass) {
    const at::Tensor other = compute_logits(model, batch, pass);
    const at::Tensor apart = (unit(other) - unit(first)).square().sum(1).sqrt();
    if (apart.max().item<double>() > kLogitTolerance || !other.argmax(1).equal(first.argmax(1))) return true;
  }
  return false;
}

int64_t number_in(const CascadeStage& stage, const char* setting, int64_t otherwise) {
  return stage.settings.value(setting, otherwise);
}

// The number of images that are classified correctly and have a gradient of 0, by the dlr loss, or the margin of
// several labels. (The dlr loss of an image whose class comes third is constant.)
int64_t images_without_gradient(AttackedModel& model, const AttackBatch& batch) {
  const Objective dlr{.loss = batch.labels.several() ? attack_loss::margin : attack_loss::dlr};
  const AttackEvaluation found = evaluate_objective(model, dlr, batch, batch.pixels, first_step("cascade.warnings", 1));
  return (found.correct & (found.gradient.flatten(1).abs().amax(1) == 0)).sum().item<int64_t>();
}

}  // namespace

bool are_probabilities(const at::Tensor& outputs) {
  return outputs.min().item<double>() > -kProbabilityTolerance &&
         outputs.max().item<double>() < 1 + kProbabilityTolerance &&
         (outputs.sum(1) - 1).abs().max().item<double>() < kProbabilityTolerance;
}

std::vector<std::string> model_warnings(AttackedModel& model, const AttackBatch& batch,
                                        const std::vector<CascadeStage>& stages, bool gradients) {
  std::vector<std::string> warnings;
  const at::Tensor logits = compute_logits(model, batch, 0);
  const int64_t classes = logits.size(1);
  const auto any = [&](const auto& holds) { return std::ranges::any_of(stages, holds); };
  if (any([](const CascadeStage& stage) { return number_in(stage, "passes", 1) == 1; }) &&
      passes_differ(model, batch, logits))
    warnings.emplace_back(
        "the model's passes differ: a single one says little; use the cascade rand, or the mean of several passes");
  if (are_probabilities(logits)) warnings.emplace_back(kProbabilitiesWarning);
  if (any([&](const CascadeStage& stage) { return number_in(stage, "targets", 0) >= classes; }))
    warnings.push_back(cat("the model has ", classes, " classes: targeted attacks go through only ", classes - 1));
  if (gradients && classes >= 3)
    if (const int64_t images = images_without_gradient(model, batch); images > 0)
      warnings.push_back(cat("the ", batch.labels.several() ? "margin" : "dlr loss", " of ", images,
                             " images has a gradient of 0: attacks with gradients may fail where "
                             "the model is not robust"));
  return warnings;
}

std::vector<std::string> stage_warnings(const std::vector<StageResult>& stages, int64_t images) {
  std::vector<std::string> warnings;
  if (stages.size() < 2) return warnings;
  for (const StageResult& stage : stages)
    if (stage.cost.gradients == 0 && static_cast<double>(stage.gained) > kSquareGain * static_cast<double>(images))
      warnings.push_back(cat(stage.name, " fooled ", stage.gained,
                             " images that attacks with gradients did not: their results are not to be trusted"));
  return warnings;
}

}  // namespace sparsight
