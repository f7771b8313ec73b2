#include "sparsight/train/loss_step.h"

#include <cmath>
#include <map>

#include "sparsight/analysis/router_accuracy.h"
#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
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
      minibatches_(minibatches) {
  weights_.zero_grad();
  result_.details["lr"] = weights_.lr(update);
}

at::Tensor LossStep::numbers(const Batch& batch, int64_t first) const {
  return at::arange(images_ + first, images_ + first + batch.labels.size(0));
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

void LossStep::add(const Batch& batch) {
  const ModelOutput output = forward(batch, batch.images);
  add(batch, {output}, task_loss(output.logits, batch, task_loss_));
}

void LossStep::add(const Batch& batch, const std::vector<ModelOutput>& passes, const at::Tensor& task) {
  const auto count = static_cast<double>(passes.size());
  at::Tensor total = context_.train.task_weight * task;
  std::map<std::string, double> auxiliary;  // unweighted, over all routers
  for (const ModelOutput& output : passes)
    for (const NamedLoss& loss : output.losses) {
      total = total + (loss.weight / count) * loss.value;
      const double value = loss.value.item<double>();
      auxiliary[loss.name] += value / count;
      if (!std::isfinite(value)) not_finite_.insert(loss.name);
    }
  const double loss = total.item<double>();
  loss_ += loss;
  task_ += task.item<double>();
  result_.means.add("loss", loss, 1);
  result_.means.add("task_loss", task.item<double>(), 1);
  for (const auto& [name, value] : auxiliary) result_.means.add("losses/" + name, value, 1);
  if (auxiliary.empty()) result_.details["losses"] = Json::object();
  report(batch, passes);
  images_ += batch.labels.size(0);
  if (std::isfinite(loss)) (total / minibatches_).backward();
}

void LossStep::report(const Batch& batch, const std::vector<ModelOutput>& passes) {
  const ModelOutput& last = passes.back();
  result_.means.add(correct_share_name(context_.data),
                    static_cast<double>(count_correct(last.logits.detach(), batch.true_labels())),
                    static_cast<double>(batch.labels.size(0)));
  if (context_.super_classes.defined()) report_routers(batch, last.routings);
  if (update_.logged) result_.details["layers"] = routing_balance(last.routings);
  if (!weights_.needs_routings()) return;
  for (const ModelOutput& output : passes)
    for (const Routing& routing : output.routings) routings_.push_back(detached(routing));
}

void LossStep::report_routers(const Batch& batch, const std::vector<Routing>& routings) {
  const at::Tensor super_class = context_.super_classes.index_select(0, batch.labels).argmax(1);
  const std::vector<RouterHits> layers = router_hits(routings, super_class, context_.super_classes.size(1));
  const std::optional<double> mean = mean_router_accuracy(layers);
  if (!mean) return;
  const auto images = static_cast<double>(batch.labels.size(0));
  result_.means.add("router_accuracy", *mean * images, images);
  if (layers.size() == 1) return;
  for (const RouterHits& layer : layers)
    result_.means.add("router_accuracies/" + layer.layer, static_cast<double>(layer.hits), images);
}

UpdateResult LossStep::finish_without_update() {
  if (!std::isfinite(loss_)) name_nonfinite_loss(result_, task_, not_finite_);
  return std::move(result_);
}

UpdateResult LossStep::finish(bool last) {
  if (std::isfinite(loss_) && !weights_.step(update_, routings_, last)) result_.not_finite = "gradient";
  return finish_without_update();
}

}  // namespace sparsight
