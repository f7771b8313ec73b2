#include "sparsight/train/adversarial/trades.h"

#include "sparsight/attacks/projection.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/ops/random_fill.h"
#include "sparsight/optim/precision.h"

namespace sparsight {
namespace {

// [B]: of the model's probabilities from those in the labels, [B,K].
at::Tensor divergence_from_labels(const at::Tensor& logits, const AttackLabels& labels) {
  const at::Tensor& p = labels.label;
  return (p * (p.log() - logits.log_softmax(1)).nan_to_num()).sum(1);
}

}  // namespace

void TradesOptions::declare(OptionSet& set) {
  set.real("beta", &beta, {0, 1e6}, "weight of the divergence under attack (1 / lambda in the paper)");
  set.integer("steps", &steps, {1, 10000}, "steps of the attack");
  set.real("relative_step", &relative_step, {1e-6, 1000}, "step size of the attack divided by epsilon");
  set.real("start_deviation", &start_deviation, {0, 1},
           "standard deviation of the normal numbers that are added to the pixels first: at the image itself the "
           "divergence has no gradient");
  adversary.declare(set);
}

at::Tensor divergence_under_attack(const at::Tensor& clean, const at::Tensor& attacked) {
  const at::Tensor log_p = clean.log_softmax(1);
  return (log_p.exp() * (log_p - attacked.log_softmax(1))).sum(1).mean();
}

Trades::Trades(const TradesOptions& options, const AlgorithmContext& context)
    : Erm(context), options_(options), adversary_(context, options.adversary) {}

at::Tensor Trades::attacked(const Batch& batch, const at::Tensor& numbers, const UpdateContext& context) const {
  const at::NoGradGuard no_grad;
  const AutocastScope autocast(use_bf16(this->context().train.precision));
  AttackedImageModel model = adversary_.model(context);
  const at::Tensor& x = batch.images;
  const at::Tensor probabilities = model.forward(x, {numbers, first_step("trades.clean", 0)}).logits.softmax(1);
  const Objective objective{.loss = divergence_from_labels};
  const AttackBatch under_attack{x, {probabilities}, numbers};
  const ThreatModel& threat = adversary_.threat();
  const Projection project(x, threat);
  const RandomRows rows{x.size(0), x.numel() / x.size(0), numbers};
  const at::Tensor noise = normal_rows(x, rows, context.random.stream("trades.start")).view(x.sizes());
  at::Tensor moved = project(x + options_.start_deviation * noise);
  const double step = options_.relative_step * threat.epsilon;
  for (int64_t t = 0; t < options_.steps; ++t) {
    const uint64_t number = first_step("trades", 0) + static_cast<uint64_t>(t);
    const at::Tensor gradient = evaluate_objective(model, objective, under_attack, moved, number).gradient;
    moved = project(moved + step * ascent_direction(gradient, threat.norm));
  }
  return moved;
}

UpdateResult Trades::update(Minibatches& minibatches, const UpdateContext& context) {
  LossStep step(this->context(), weights(), context, minibatches.left());
  while (minibatches.left() > 0) {
    const Batch batch = minibatches.next();
    const at::Tensor moved = attacked(batch, step.numbers(batch), context);
    const ModelOutput clean = step.forward(batch, batch.images), adversarial = step.forward(batch, moved);
    NamedMeans clean_accuracy;
    clean_accuracy.add("clean_accuracy", static_cast<double>(count_correct(clean.logits.detach(), batch.labels)),
                       static_cast<double>(batch.labels.size(0)));
    const at::Tensor divergence = divergence_under_attack(clean.logits, adversarial.logits);
    step.add(batch, {clean, adversarial}, step.task_loss(clean.logits, batch) + options_.beta * divergence,
             clean_accuracy);
  }
  return step.finish();
}

}  // namespace sparsight
