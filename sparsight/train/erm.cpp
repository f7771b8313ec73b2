#include "sparsight/train/erm.h"

#include <cmath>
#include <map>
#include <set>

#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/optim/precision.h"

namespace sparsight {
namespace {

// Names what was not finite. A step with a finite task loss fails by its auxiliary losses, which a lower learning rate
// does not repair.
void blame_loss(UpdateResult& result, double task, const std::set<std::string>& auxiliary) {
  result.not_finite = "loss";
  if (!std::isfinite(task) || auxiliary.empty()) return;
  const std::vector<std::string> names(auxiliary.begin(), auxiliary.end());
  result.not_finite = cat(names.size() == 1 ? "auxiliary loss " : "auxiliary losses ", join(names));
  result.remedy = "The task loss is finite: check the auxiliary loss, or train without it (weight 0)";
}

}  // namespace

// Accumulates the minibatches of a step. Images are numbered across all minibatches, so random numbers do not depend on
// how the batch is divided.
struct Erm::Step {
  int64_t minibatches = 0, images = 0;
  double loss = 0;                   // task loss plus weighted auxiliary losses, summed over minibatches
  double task = 0;                   // task loss alone
  std::set<std::string> not_finite;  // auxiliary losses
  UpdateResult result;
  std::vector<Routing> routings;  // for routers with a post-step update
};

Erm::Erm(const AlgorithmContext& given) : Algorithm(given), weights_(given), bf16_(use_bf16(given.train.precision)) {}

void Erm::forward_backward(const Batch& batch, const UpdateContext& context, Step& step) {
  ModelOutput output;
  {
    AutocastScope autocast(bf16_);
    const at::Tensor numbers = at::arange(step.images, step.images + batch.labels.size(0));
    const at::Tensor target = super_class_targets(batch, this->context().super_classes);
    output = model().forward({.images = batch.images,
                              .mode = ForwardMode::training(),
                              .random = context.random,
                              .info = {.image = numbers, .target = target}});
  }
  const at::Tensor task = task_loss(output.logits, batch);
  at::Tensor total = this->context().train.task_weight * task;
  std::map<std::string, double> auxiliary;  // unweighted, summed over layers
  for (const NamedLoss& loss : output.losses) {
    total = total + loss.weight * loss.value;
    const double value = loss.value.item<double>();
    auxiliary[loss.name] += value;
    if (!std::isfinite(value)) step.not_finite.insert(loss.name);
  }
  if (context.logged) step.result.details["layers"] = routing_balance(output.routings);
  if (weights_.needs_routings())
    for (Routing& routing : output.routings) step.routings.push_back(detached(std::move(routing)));
  const double loss = total.item<double>();
  NamedMeans& means = step.result.means;
  means.add("loss", loss, 1);
  means.add("task_loss", task.item<double>(), 1);
  for (const auto& [name, value] : auxiliary) means.add("losses/" + name, value, 1);
  const int64_t images = batch.labels.size(0);
  means.add("accuracy", static_cast<double>(count_correct(output.logits.detach(), batch.labels)),
            static_cast<double>(images));
  if (auxiliary.empty()) step.result.details["losses"] = Json::object();
  step.images += images;
  step.loss += loss;
  step.task += task.item<double>();
  if (std::isfinite(loss)) (total / step.minibatches).backward();
}

UpdateResult Erm::update(Minibatches& minibatches, const UpdateContext& context) {
  Step step;
  step.minibatches = minibatches.left();
  step.result.details["lr"] = weights_.lr(context);
  weights_.zero_grad();
  while (minibatches.left() > 0) forward_backward(minibatches.next(), context, step);
  if (!std::isfinite(step.loss)) {
    blame_loss(step.result, step.task, step.not_finite);
  } else if (!weights_.step(context, step.routings)) {
    step.result.not_finite = "gradient";
  }
  return std::move(step.result);
}

AlgorithmState Erm::state() const { return weights_.state(); }

void Erm::load_state(const AlgorithmState& state) { weights_.load_state(state); }

}  // namespace sparsight
