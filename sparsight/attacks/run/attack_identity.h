// What an attack is: the settings that its results follow from, to tell it from others, and the description in its
// report: epsilon and its units, norm, settings, capacity, seeds, precision, images, fingerprints, versions.
#pragma once

#include "sparsight/attacks/run/attack_plan.h"
#include "sparsight/attacks/run/attacked_images.h"
#include "sparsight/attacks/run/attacked_run.h"

namespace sparsight {

// {"attack": {"name", "version", "norm", "epsilon", "range", "seed", "noise", "stages"}, "exact", "precision",
// "weights", "model":
// {"fingerprint"}, "data": {"name", "split", "images", "classes", "settings"}}. Equal for equal results; the target of
// an attack is a setting of its stage.
Json attack_identity(const AttackRequest& request, const AttackPlan& plan, const AttackedRun& run,
                     const AttackedImages& images);

// {"model", "data", "threat", "attack", "exact", "precision", "environment"}
Json attack_description(const AttackRequest& request, const AttackPlan& plan, const AttackedRun& run,
                        const AttackedImages& images);

}  // namespace sparsight
