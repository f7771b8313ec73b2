#include "sparsight/train/adversarial/adversary.h"

#include "sparsight/optim/precision.h"

namespace sparsight {

void AdversaryOptions::declare(OptionSet& set) {
  threat.declare(set);
  set.choice(
      "mode", &mode, {"training", "evaluation"},
      "the attack's passes: with router noise (new in each step of the attack), capacity and choices of training, "
      "or as in evaluation; never with dropout, drop path or batch statistics");
}

ThreatModel training_threat(const AlgorithmContext& context, const ThreatOptions& options) {
  const ThreatModel threat = make_threat(options);
  if (const auto& made = context.model->definition())
    check_radius(threat, made->image.channels * made->image.height * made->image.width);
  return threat;
}

Adversary::Adversary(const AlgorithmContext& context, const AdversaryOptions& options, bool losses)
    : model_(context.model),
      threat_(training_threat(context, options.threat)),
      bf16_(use_bf16(context.train.precision)) {
  mode_.noise = mode_.capacity = mode_.choices = options.mode == "training";
  mode_.losses = losses;
}

AttackedImageModel Adversary::model(const UpdateContext& update) const {
  return AttackedImageModel(model_, {.mode = mode_, .seed = update.random.stream("adversary.model").seed()});
}

AttackContext Adversary::attack(const UpdateContext& update) const {
  return {.threat = threat_, .seed = update.random.stream("adversary.start").seed()};
}

at::Tensor Adversary::attacked(const Pgd& attack, const Batch& batch, const at::Tensor& numbers,
                               const UpdateContext& update) const {
  const AutocastScope autocast(bf16_);
  AttackedImageModel model = this->model(update);
  return attack.pixels(model, {batch.images, {batch.true_labels()}, numbers});
}

}  // namespace sparsight
