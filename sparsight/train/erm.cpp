#include "sparsight/train/erm.h"

#include <cmath>
#include <map>

#include "sparsight/analysis/routing_accumulator.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/optim/precision.h"

namespace sparsight {

// Accumulates the minibatches of a step. Images are numbered across all minibatches, so random numbers do not depend on
// how the batch is divided.
struct Erm::Step {
  int64_t minibatches = 0, images = 0;
  double loss = 0;  // task loss plus weighted auxiliary losses, summed over minibatches
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
    auxiliary[loss.name] += loss.value.item<double>();
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
  if (std::isfinite(loss)) (total / step.minibatches).backward();
}

UpdateResult Erm::update(Minibatches& minibatches, const UpdateContext& context) {
  Step step;
  step.minibatches = minibatches.left();
  step.result.details["lr"] = weights_.lr(context);
  weights_.zero_grad();
  while (minibatches.left() > 0) forward_backward(minibatches.next(), context, step);
  if (!std::isfinite(step.loss)) {
    step.result.not_finite = "loss";
  } else if (!weights_.step(context, step.routings)) {
    step.result.not_finite = "gradient";
  }
  return std::move(step.result);
}

AlgorithmState Erm::state() const { return weights_.state(); }

void Erm::load_state(const AlgorithmState& state) { weights_.load_state(state); }

}  // namespace sparsight
