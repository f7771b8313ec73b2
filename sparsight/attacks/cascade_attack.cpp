#include "sparsight/attacks/cascade_attack.h"

#include <algorithm>

#include "sparsight/attacks/register_attacks.h"

namespace sparsight {

void CascadeOptions::declare(OptionSet& set) {
  set.choice("version", &version, {"standard", "plus", "rand"},
             "standard: apgd-ce, apgd-t, fab-t, square; plus: six attacks with restarts; rand, for models with noise: "
             "apgd-ce and apgd-dlr with averaged gradients");
  set.integer("batch_size", &batch_size, {1, 1000000}, "images that are attacked together");
}

bool CascadeAttack::takes_norm(Norm norm) const {
  return std::ranges::all_of(cascade_stages(options_.version), [&](const CascadeStage& stage) {
    return attacks().make(stage.attack, stage.settings, stage.name, {})->takes_norm(norm);
  });
}

at::Tensor CascadeAttack::perturb(AttackedModel& model, const AttackBatch& batch) const {
  return run_cascade(model, batch, context(), cascade_stages(options_.version), options_.batch_size).pixels;
}

}  // namespace sparsight
