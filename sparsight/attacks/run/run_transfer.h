// `sparsight attack RUN --transfer-from SOURCE`: images that fool one model, evaluated on another.
#pragma once

#include "sparsight/attacks/run/run_attack.h"

namespace sparsight {

// The folder that it writes: request.out, or NAME_from_SOURCE in attacks/ of the run.
std::string transfer_folder(const AttackRequest& request, const std::string& source);

// transfer.json (docs/attacks.md). Attacks `source` as run_attack() would, in its folder attacks/ or, with request.out,
// in the folder source/ of it; a finished attack is only read. request.weights are those of the evaluated model alone.
// Raises UsageError and Error as run_attack(), and Error where the two models do not get the same images, which is
// where one of these lies outside of the threat model around the image that the other sees.
Json run_transfer(const AttackRequest& request, const std::string& source, const OnAttackResult& on_result,
                  dist::Group& group);

}  // namespace sparsight
