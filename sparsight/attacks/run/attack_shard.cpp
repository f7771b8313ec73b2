#include "sparsight/attacks/run/attack_shard.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "sparsight/attacks/attack_saver.h"
#include "sparsight/attacks/per_image.h"
#include "sparsight/attacks/register_attacks.h"
#include "sparsight/attacks/routed/objective.h"
#include "sparsight/core/error.h"

namespace sparsight {
namespace {

AttackPass first_pass(const AttackBatch& batch) { return {batch.image, first_step("verdict", 0)}; }

// The images that are attacked together. One whose label is the target has nothing to reach, and stays as it is unless
// images are attacked `together`.
std::vector<at::Tensor> attack_calls(const AttackBatch& batch, bool together, int64_t batch_size) {
  at::Tensor index = at::arange(batch.pixels.size(0), at::kLong);
  if (batch.labels.targeted && !together) index = batch.labels.label.ne(batch.labels.target).nonzero().squeeze(1);
  return index.size(0) > 0 ? index.split(batch_size) : std::vector<at::Tensor>();
}

// All images, whether they are fooled or not: the points of a single attack say how far it came.
CascadeResult run_single_attack(AttackedModel& model, const AttackBatch& given, const PieceAttack& how) {
  const AttackCost before = model.cost();
  const CascadeStage& stage = how.plan.stages.at(0);
  const auto attack = attacks().make(stage.attack, stage.settings, stage.name, how.context);
  const at::Tensor clean = clean_logits(model, given, how.batch_size);
  const AttackBatch batch = with_chosen_targets(*attack, given, clean);
  const bool targeted = batch.labels.targeted;
  const std::vector<at::Tensor> calls =
      attack_calls(batch, model.coupled() || attack->couples_images(), how.batch_size);
  CascadeResult result;
  result.pixels = batch.pixels.clone();
  result.clean = classified_correctly(clean, batch.labels.label);
  if (targeted) result.target = batch.labels.target;
  at::Tensor correct = result.clean.clone(), withstood = withstands_attack(clean, batch.labels);
  if (attack->measures_distances())  // infinite for images that are left out
    result.distance = at::full({correct.size(0)}, std::numeric_limits<double>::infinity(), at::kDouble);
  const double start = attack_seconds(how.context.saver);
  const AttackCost first_pass = model.cost();
  std::vector<at::Tensor*> state{&result.pixels, &correct, &result.distance};
  if (targeted) state.push_back(&withstood);
  const SavedLoop loop(how.context.saver, first_step("calls", how.batch_size), state);
  for (int64_t call = loop.done(std::ssize(calls)); call < std::ssize(calls); ++call) {
    const at::Tensor& index = calls[static_cast<size_t>(call)];
    if (how.progress) how.progress(0, result.clean.index_select(0, index).sum().item<int64_t>());
    const AttackResult found = attack->run(model, batch.select(index));
    result.pixels.index_copy_(0, index, found.pixels);
    correct.index_copy_(0, index, found.correct);
    withstood.index_copy_(0, index, found.withstood);
    if (result.distance.defined()) result.distance.index_copy_(0, index, found.distance);
    loop.mark_and_save(call + 1);
  }
  StageResult done{
      .name = stage.name, .cost = model.cost() - first_pass, .seconds = attack_seconds(how.context.saver) - start};
  result.robust = result.clean & correct;
  const at::Tensor fooled =
      counted_images(result.clean, batch.labels.label, result.target) & ~(targeted ? withstood : correct);
  result.stage = fooled.to(at::kLong) - 1;
  done.robust_before = result.clean.sum().item<int64_t>();
  done.gained = (result.clean & ~result.robust).sum().item<int64_t>();
  result.stages = {done};
  result.cost = model.cost() - before;
  return result;
}

}  // namespace

CascadeResult run_plan(AttackedModel& model, const AttackBatch& batch, const PieceAttack& how) {
  return how.plan.is_cascade() ? run_stages(model, batch, how.context, how.plan.stages, how.batch_size, how.progress)
                               : run_single_attack(model, batch, how);
}

ModelVerdict model_verdict(AttackedModel& model, const AttackBatch& batch, const at::Tensor& pixels,
                           int64_t batch_size) {
  const at::NoGradGuard no_grad;
  ModelVerdict verdict;
  std::vector<at::Tensor> logits;
  RoutingCollector routings;
  for (const at::Tensor& index : at::arange(pixels.size(0), at::kLong).split(batch_size)) {
    const AttackBatch some = batch.select(index);
    const at::Tensor x = pixels.index_select(0, index);
    const ModelOutput output = model.forward(x, first_pass(some));
    at::Tensor decided = output.logits;
    if (model.randomised())
      decided = evaluate_loss(model, {.passes = kVerdictPasses}, some, x, first_step("verdict", 1)).logits;
    logits.push_back(decided.detach().to(decided.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
    routings.add(to_routings(output));
    if (!verdict.layers.empty()) continue;
    for (const Routing& routing : output.routings) verdict.layers.push_back(routing.layer);
    for (const SoftRouting& routing : output.soft_routings) verdict.layers.push_back(routing.layer);
  }
  verdict.logits = at::cat(logits);
  verdict.routings = routings.all();
  return verdict;
}

AttackShard attack_shard(ObservedModel& model, const AttackedBatch& images, const PieceAttack& how) {
  const at::NoGradGuard no_grad;
  model.set_counts({});
  const AttackBatch& batch = images.batch;
  AttackShard piece;
  piece.batch = batch;
  piece.checksum = images.checksum;
  const CascadeResult found = run_plan(model, batch, how);
  if (how.context.saver) how.context.saver->check_finished();
  piece.pixels = found.pixels.contiguous();
  piece.stage = found.stage;
  piece.target = found.target;
  piece.distance = found.distance;
  piece.stages = found.stages;
  piece.cost = found.cost;
  piece.gradients = model.gradients();
  piece.norm = image_norms(piece.pixels.to(at::kDouble) - batch.pixels.to(at::kDouble), how.context.threat.norm);
  std::vector<int64_t> queries;
  for (int64_t i = 0; i < batch.image.size(0); ++i)
    queries.push_back(model.image_queries(batch.image[i].item<int64_t>()));
  piece.queries = at::tensor(queries, at::kLong);
  const int64_t together = how.exact ? 1 : how.batch_size;
  piece.clean = model_verdict(model, batch, batch.pixels, together);
  piece.attacked = model_verdict(model, batch, piece.pixels, together);
  return piece;
}

AttackSuccess piece_success(const AttackShard& piece) {
  return attack_success(piece.clean.logits, piece.attacked.logits, piece.batch.labels.label, piece.target);
}

at::Tensor clean_correct(const AttackShard& piece) {
  return classified_correctly(piece.clean.logits, piece.batch.labels.label);
}

at::Tensor attacked_correct(const AttackShard& piece) {
  return classified_correctly(piece.attacked.logits, piece.batch.labels.label);
}

}  // namespace sparsight
