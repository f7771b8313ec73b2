#include "sparsight/train/loss_step.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "sparsight/analysis/router_accuracy.h"
#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/dist/exact_parts.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/optim/precision.h"

namespace sparsight {
namespace {

// Names what was not finite. A step with a finite task loss fails by its auxiliary losses, which a lower learning rate
// does not repair.
void name_nonfinite_loss(UpdateResult& result, double task, const std::set<std::string>& auxiliary) {
  result.not_finite = "loss";
  if (!std::isfinite(task) || auxiliary.empty()) return;
  const std::vector<std::string> names(auxiliary.begin(), auxiliary.end());
  result.not_finite = cat(names.size() == 1 ? "auxiliary loss " : "auxiliary losses ", join(names));
  result.remedy = "The task loss is finite: check the auxiliary loss, or train without it (weight 0)";
}

}  // namespace

LossStep::LossStep(const AlgorithmContext& context, WeightUpdate& weights, const UpdateContext& update,
                   int64_t minibatches)
    : context_(context),
      weights_(weights),
      update_(update),
      task_loss_(task_loss_named(context.train.task_loss, context.data)),
      bf16_(use_bf16(context.train.precision)),
      minibatches_(minibatches * context.group->size()),
      gradients_(context.group, weights.everywhere()),
      expert_gradients_(weights.expert_ranks().copies, weights.spread()) {
  if (context.group->size() > 1) moments_.emplace();
  weights_.zero_grad();
  result_.details["lr"] = weights_.lr(update);
}

// The number of the next batch's first image among those of the step.
int64_t LossStep::first_image(const Batch& batch) const {
  if (!next_) next_ = context_.group->counts(batch.labels.size(0));
  return images_ + next_->before;
}

at::Tensor LossStep::numbers(const Batch& batch, int64_t first) const {
  const int64_t from = first_image(batch) + first;
  return at::arange(from, from + batch.labels.size(0));
}

ModelOutput LossStep::forward(const Batch& batch, const at::Tensor& images, int64_t first,
                              const std::vector<std::string>& taps) const {
  const AutocastScope autocast(bf16_);
  return context_.model->forward(
      {.images = images,
       .mode = ForwardMode::training(),
       .random = update_.random,
       .info = {.image = numbers(batch, first), .target = super_class_targets(batch, context_.super_classes)},
       .taps = taps});
}

at::Tensor LossStep::task_loss(const at::Tensor& logits, const Batch& batch) const {
  return sparsight::task_loss(logits, batch, task_loss_, context_.class_weights);
}

void LossStep::add(const Batch& batch) {
  const ModelOutput output = forward(batch, batch.images);
  add(batch, {output}, task_loss(output.logits, batch));
}

void LossStep::add(const Batch& batch, const std::vector<ModelOutput>& passes, const at::Tensor& task,
                   const NamedMeans& more) {
  const auto count = static_cast<double>(passes.size());
  at::Tensor total = context_.train.task_weight * task;
  MinibatchReport own;
  std::map<std::string, double> auxiliary;  // unweighted, over all routers
  for (const ModelOutput& output : passes)
    for (const NamedLoss& loss : output.losses) {
      total = total + (loss.weight / count) * loss.value;
      const double value = loss.value.item<double>();
      auxiliary[loss.name] += value / count;
      if (!std::isfinite(value)) own.not_finite.insert(loss.name);
    }
  own.loss = total.item<double>(), own.task = task.item<double>();
  own.means.add("loss", own.loss, 1);
  own.means.add("task_loss", own.task, 1);
  for (const auto& [name, value] : auxiliary) own.means.add("losses/" + name, value, 1);
  if (auxiliary.empty()) own.details["losses"] = Json::object();
  report(batch, passes, own);
  own.means.add(more);
  first_image(batch);
  images_ += next_->all;
  next_.reset();
  if (all_finite(own.loss)) (total / minibatches_).backward();
  gradients_.add();
  if (auto* const exact = dynamic_cast<dist::ExactParts*>(weights_.expert_ranks().parts.get()))
    expert_gradients_.add(exact->take(weights_.spread()));
  else
    expert_gradients_.add();
  if (moments_) own.moments = std::exchange(moments_->moments, {});
  for (MinibatchReport& one : all_reports(*context_.group, std::move(own), *context_.model)) {
    loss_ += one.loss, task_ += one.task;
    not_finite_.merge(one.not_finite);
    result_.means.add(one.means);
    result_.details.update(one.details);
    for (const BatchMoments& moments : one.moments) moments.update_averages();
    std::ranges::move(one.routings, std::back_inserter(routings_));
  }
}

// Ranks that have experts for each other go through the backward pass together, or not at all.
bool LossStep::all_finite(double loss) const { return !weights_.expert_ranks().parts->any(!std::isfinite(loss)); }

void LossStep::report(const Batch& batch, const std::vector<ModelOutput>& passes, MinibatchReport& report) const {
  const ModelOutput& last = passes.back();
  report.means.add(correct_share_name(context_.data),
                   static_cast<double>(count_correct(last.logits.detach(), batch.true_labels())),
                   static_cast<double>(batch.labels.size(0)));
  if (context_.super_classes.defined()) report_routers(batch, last.routings, report);
  if (update_.logged) report.details["layers"] = routing_balance(last.routings);
  if (!weights_.needs_routings()) return;
  for (const ModelOutput& output : passes)
    for (const Routing& routing : output.routings) report.routings.push_back(detached(routing));
}

void LossStep::report_routers(const Batch& batch, const std::vector<Routing>& routings, MinibatchReport& report) const {
  const at::Tensor super_class = context_.super_classes.index_select(0, batch.labels).argmax(1);
  const std::vector<RouterHits> layers = router_hits(routings, super_class, context_.super_classes.size(1));
  const std::optional<double> mean = mean_router_accuracy(layers);
  if (!mean) return;
  const auto images = static_cast<double>(batch.labels.size(0));
  report.means.add("router_accuracy", *mean * images, images);
  if (layers.size() == 1) return;
  for (const RouterHits& layer : layers)
    report.means.add("router_accuracies/" + layer.layer, static_cast<double>(layer.hits), images);
}

UpdateResult LossStep::finish_without_update() {
  moments_.reset();
  if (!std::isfinite(loss_)) name_nonfinite_loss(result_, task_, not_finite_);
  return std::move(result_);
}

UpdateResult LossStep::finish(bool last) {
  gradients_.finish();
  expert_gradients_.finish();
  if (std::isfinite(loss_) && !weights_.step(update_, routings_, last)) result_.not_finite = "gradient";
  return finish_without_update();
}

}  // namespace sparsight
