#include "sparsight/attacks/cascade.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/cascade_warnings.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/core/error.h"

namespace sparsight {

namespace {

const CascadeStage kSquare{"square", "square", {{"queries", 5000}}};
const CascadeStage kTargetedApgd{"apgd-t", "apgd_t", {{"targets", 9}}};
const CascadeStage kTargetedFab{"fab-t", "fab_t", {{"targets", 9}}};

CascadeStage apgd_stage(const std::string& name, const std::string& loss, int64_t restarts, int64_t passes) {
  return {name, "apgd", {{"loss", loss}, {"restarts", restarts}, {"passes", passes}}};
}

double true_share(const at::Tensor& flags) {
  return flags.size(0) > 0 ? static_cast<double>(flags.sum().item<int64_t>()) / static_cast<double>(flags.size(0)) : 0;
}

// The images that one call attacks together. Where images influence each other a call has the same images in every
// stage.
std::vector<at::Tensor> split_calls(const at::Tensor& robust, bool coupled, int64_t batch_size) {
  std::vector<at::Tensor> calls;
  const at::Tensor all = images_to_attack(robust, coupled);
  if (all.size(0) == 0) return calls;
  for (const at::Tensor& index : all.split(batch_size))
    if (robust.index_select(0, index).any().item<bool>()) calls.push_back(index);
  return calls;
}

struct StageCalls {
  int64_t batch_size = 0;
  const CascadeProgress& progress;
};

// What is kept of the images of a call.
struct KeptImages {
  at::Tensor pixels, robust;  // [B,...], [B] bool
};

KeptImages keep_fooled(const KeptImages& before, const AttackResult& found) {
  const at::Tensor fooled = before.robust & ~found.correct;
  return {choose_images(fooled, found.pixels, before.pixels), before.robust & ~fooled};
}

// Where images influence each other, what fools an image holds only beside the others: kept is the whole batch of which
// the fewest images are robust, of the batch as it was, that with the newly fooled images in it, and the attack's.
KeptImages keep_batch(AttackedModel& model, const AttackBatch& batch, const at::Tensor& clean, const KeptImages& before,
                      const AttackResult& found) {
  KeptImages mixed = keep_fooled(before, found);
  mixed.robust = clean & still_correct(model, batch, mixed.pixels, first_step("cascade.mixed", 0));
  KeptImages best = before;
  for (const KeptImages& other : {mixed, KeptImages{found.pixels, clean & found.correct}})
    if (other.robust.sum().item<int64_t>() < best.robust.sum().item<int64_t>()) best = other;
  return best;
}

// The stage that fooled each image, [B] int64, once the stage `number` changed who is robust.
at::Tensor stages_after(const at::Tensor& stage, const KeptImages& before, const KeptImages& after, size_t number) {
  const auto all = [&](int64_t value) { return at::full_like(stage, value); };
  const at::Tensor fooled = choose_images(before.robust & ~after.robust, all(static_cast<int64_t>(number)), stage);
  return choose_images(after.robust, all(-1), fooled);
}

int64_t count_true(const at::Tensor& flags) { return flags.sum().item<int64_t>(); }

StageResult run_stage(const CascadeStage& stage, size_t number, AttackedModel& model, const AttackBatch& batch,
                      const AttackContext& context, const StageCalls& calls, CascadeResult& result) {
  const double start = attack_seconds(context.saver);
  const AttackCost cost_before = model.cost();
  const std::shared_ptr<Attack> attack = attacks().make(stage.attack, stage.settings, stage.name, context);
  const bool together = model.coupled() || attack->couples_images();
  at::Tensor robust_before = result.robust.clone();
  const SavedLoop loop(context.saver, first_step("cascade.calls", static_cast<int64_t>(number), calls.batch_size),
                       {&result.pixels, &result.robust, &result.stage, &robust_before});
  const std::vector<at::Tensor> all = split_calls(robust_before, together, calls.batch_size);
  for (int64_t call = loop.done(std::ssize(all)); call < std::ssize(all); ++call) {
    if (calls.progress) calls.progress(number, count_true(result.robust));
    const at::Tensor& index = all[static_cast<size_t>(call)];
    const AttackBatch some = batch.select(index);
    const KeptImages before{result.pixels.index_select(0, index), result.robust.index_select(0, index)};
    const AttackResult found = attack->run(model, some);
    const KeptImages after = model.coupled()
                                 ? keep_batch(model, some, result.clean.index_select(0, index), before, found)
                                 : keep_fooled(before, found);
    result.pixels.index_copy_(0, index, after.pixels);
    result.robust.index_copy_(0, index, after.robust);
    result.stage.index_copy_(0, index, stages_after(result.stage.index_select(0, index), before, after, number));
    loop.mark_and_save(call + 1);
  }
  const int64_t robust = count_true(robust_before);
  return {stage.name, robust, robust - count_true(result.robust), model.cost() - cost_before,
          attack_seconds(context.saver) - start};
}

constexpr double kMaxInRow = 1e15;  // in a row that is read

// The numbers of a stage as a row [5] fp64, for SavedLoop.
at::Tensor to_row(const StageResult& stage) {
  const auto real = [](int64_t count) { return static_cast<double>(count); };
  return at::tensor({real(stage.robust_before), real(stage.gained), real(stage.cost.queries),
                     real(stage.cost.gradients), stage.seconds},
                    at::kDouble);
}

StageResult to_stage(const std::string& name, const at::Tensor& row) {
  const double* values = row.const_data_ptr<double>();
  const auto count = [&](size_t i) { return static_cast<int64_t>(values[i]); };
  return {name, count(0), count(1), {count(2), count(3)}, values[4]};
}

}  // namespace

std::vector<CascadeStage> cascade_stages(const std::string& version) {
  if (version == "standard")
    return {apgd_stage("apgd-ce", "cross_entropy", 1, 1), kTargetedApgd, kTargetedFab, kSquare};
  if (version == "plus")
    return {apgd_stage("apgd-ce", "cross_entropy", 5, 1),
            apgd_stage("apgd-dlr", "dlr", 5, 1),
            {"fab", "fab", {{"restarts", 5}}},
            kSquare,
            kTargetedApgd,
            kTargetedFab};
  if (version == "rand") return {apgd_stage("apgd-ce", "cross_entropy", 1, 20), apgd_stage("apgd-dlr", "dlr", 1, 20)};
  fail_usage("the cascade \"", version, "\" does not exist: standard, plus, or rand for models with noise");
}

at::Tensor clean_logits(AttackedModel& model, const AttackBatch& batch, int64_t batch_size) {
  std::vector<at::Tensor> logits;
  for (const at::Tensor& index : at::arange(batch.pixels.size(0), at::kLong).split(batch_size)) {
    const AttackBatch some = batch.select(index);
    logits.push_back(verdict_logits(model, some, some.pixels, first_step("cascade.clean", 0)));
  }
  return at::cat(logits);
}

at::Tensor classify(AttackedModel& model, const AttackBatch& batch, int64_t batch_size) {
  return classified_correctly(clean_logits(model, batch, batch_size), batch.labels.label);
}

double CascadeResult::clean_accuracy() const { return true_share(clean); }
double CascadeResult::robust_accuracy() const { return true_share(robust); }

CascadeProgress show_stages(Progress& progress, const std::vector<CascadeStage>& stages, int64_t first, int64_t end) {
  return [&progress, &stages, first, end](size_t stage, int64_t robust) {
    progress.update(first + (end - first) * static_cast<int64_t>(stage) / std::ssize(stages),
                    cat(stages.at(stage).name, ", ", robust, " robust"));
  };
}

CascadeResult run_stages(AttackedModel& model, const AttackBatch& given, const AttackContext& context,
                         const std::vector<CascadeStage>& stages, int64_t batch_size, const CascadeProgress& progress) {
  const at::NoGradGuard no_grad;
  const AttackCost before = model.cost();
  if (given.pixels.size(0) == 0) fail("the cascade got no images; give it at least one");
  AttackBatch batch = given;
  if (!batch.image.defined()) batch.image = at::arange(batch.pixels.size(0), at::kLong);
  CascadeResult result;
  result.pixels = batch.pixels.detach().clone();
  result.clean = classify(model, batch, batch_size);
  result.robust = result.clean.clone();
  result.stage = at::full({batch.pixels.size(0)}, -1, at::kLong);
  at::Tensor rows = at::zeros({std::ssize(stages), 5}, at::kDouble);
  const SavedLoop loop(context.saver, first_step("cascade.stages", 0), {&result.clean, &rows});
  if (!(rows.abs() <= kMaxInRow).all().item<bool>()) context.saver->refuse_damaged("numbers of a finished attack");
  for (auto number = static_cast<size_t>(loop.done(std::ssize(stages))); number < stages.size(); ++number) {
    rows[static_cast<int64_t>(number)].copy_(
        to_row(run_stage(stages[number], number, model, batch, context, {batch_size, progress}, result)));
    loop.mark(static_cast<int64_t>(number) + 1);
  }
  for (size_t number = 0; number < stages.size(); ++number)
    result.stages.push_back(to_stage(stages[number].name, rows[static_cast<int64_t>(number)]));
  result.cost = model.cost() - before;
  return result;
}

CascadeResult run_cascade(AttackedModel& model, const AttackBatch& given, const AttackContext& context,
                          const std::vector<CascadeStage>& stages, int64_t batch_size) {
  const at::NoGradGuard no_grad;
  const AttackCost before = model.cost();
  CascadeResult result = run_stages(model, given, context, stages, batch_size);
  AttackBatch first = given;
  if (!first.image.defined()) first.image = at::arange(first.pixels.size(0), at::kLong);
  first = first.select(at::arange(std::min(batch_size, first.pixels.size(0)), at::kLong));
  result.warnings = model_warnings(model, first, stages);
  for (std::string& warning : stage_warnings(result.stages, result.robust.size(0)))
    result.warnings.push_back(std::move(warning));
  result.cost = model.cost() - before;
  return result;
}

Json to_json(const CascadeResult& result, const AttackContext& context) {
  Json stages = Json::array();
  for (const StageResult& stage : result.stages)
    stages.push_back({{"name", stage.name},
                      {"robust_before", stage.robust_before},
                      {"gained", stage.gained},
                      {"robust_after", stage.robust_before - stage.gained},
                      {"queries", stage.cost.queries},
                      {"gradients", stage.cost.gradients},
                      {"seconds", stage.seconds}});
  return {{"images", result.robust.size(0)},
          {"clean_accuracy", result.clean_accuracy()},
          {"robust_accuracy", result.robust_accuracy()},
          {"norm", to_text(context.threat.norm)},
          {"epsilon", context.threat.epsilon},
          {"range", to_text(context.threat.range)},
          {"seed", context.seed},
          {"stages", stages},
          {"queries", result.cost.queries},
          {"gradients", result.cost.gradients},
          {"warnings", result.warnings}};
}

}  // namespace sparsight
