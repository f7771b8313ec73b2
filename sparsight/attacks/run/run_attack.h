// `sparsight attack`: attacks the images of a dataset, saves what is done as it goes, and reports.
#pragma once

#include <functional>

#include "sparsight/attacks/run/attack_request.h"
#include "sparsight/core/options.h"
#include "sparsight/dist/group.h"

namespace sparsight {

// The folder that the attack writes: request.out, or one in attacks/ of the run.
std::string attack_folder(const AttackRequest& request);

// Gets the result as soon as it is known. Its files may still fail to be written: then an Error follows.
using OnAttackResult = std::function<void(const Json& result)>;

// result.json (docs/attacks.md). A killed attack goes on with the images that are left and gives the same records; a
// finished one is only read again. Raises UsageError for a request that makes no sense for this model, Error for a
// folder of another attack, damaged files, files that cannot be written, and on Ctrl-C.
Json run_attack(const AttackRequest& request, const OnAttackResult& on_result = {});
// The same with images shared out over the ranks of a group, with the files and records of one process. Rank 0 alone
// reads and writes the folder and has the result; the others return null. A rank that finds the folder too, on a disk
// that they share, saves there how far its images are.
Json run_attack(const AttackRequest& request, const OnAttackResult& on_result, dist::Group& group);

}  // namespace sparsight
