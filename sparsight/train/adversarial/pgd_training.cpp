#include "sparsight/train/adversarial/pgd_training.h"

#include "sparsight/train/loss_step.h"

namespace sparsight {

void PgdTrainingOptions::declare(OptionSet& set) {
  set.choice(
      "preset", &preset, {"paper", "strict"},
      "paper (Puigcerver et al.): steps of epsilon / steps from the image itself, neither projected nor clipped; "
      "strict: projected onto the ball and the range of pixels");
  set.integer("steps", &steps, {1, 10000}, "steps of the attack");
  set.real("relative_step", &relative_step, {0, 1000},
           "step size divided by epsilon, with preset = strict; 0: 1 / steps with paper, 2.5 / steps with strict");
  set.choice("start", &start, {"none", "ball", "surface"},
             "where the attack starts, with preset = strict: at the image, at a uniform point of the ball, or on its "
             "surface");
  set.choice("loss", &loss, attack_loss_names(), "loss that the attack maximises; auto: train.task_loss");
  router.declare(set);
  adversary.declare(set);
}

PgdOptions PgdTrainingOptions::attack() const {
  PgdOptions attack{.preset = preset, .steps = steps, .relative_step = relative_step, .start = start};
  if (preset == "strict") attack.keep = "last";
  attack.objective.loss = loss;
  attack.objective.router = router;
  return attack;
}

PgdTraining::PgdTraining(const PgdTrainingOptions& options, const AlgorithmContext& context)
    : PgdTraining(options.attack(), options.adversary, context) {}

PgdTraining::PgdTraining(const PgdOptions& attack, const AdversaryOptions& adversary, const AlgorithmContext& context)
    : Erm(context), attack_(attack), adversary_(context, adversary, !attack.objective.router.router_losses.empty()) {
  const TaskLoss task = task_loss_named(context.train.task_loss, context.data);
  if (attack_.objective.loss == "auto" && task == TaskLoss::sigmoid_cross_entropy)
    attack_.objective.loss = "sigmoid_cross_entropy";
  const Pgd checked(attack_, {.threat = adversary_.threat()});
}

UpdateResult PgdTraining::update(Minibatches& minibatches, const UpdateContext& context) {
  LossStep step(this->context(), weights(), context, minibatches.left());
  const Pgd attack(attack_, adversary_.attack(context));
  while (minibatches.left() > 0) {
    Batch batch = minibatches.next();
    batch.images = adversary_.attacked(attack, batch, step.numbers(batch), context);
    step.add(batch);
  }
  return step.finish();
}

}  // namespace sparsight
