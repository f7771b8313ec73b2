// A finished run that is trained for more epochs: in extensions.json, a list of {"from", "to"}, the run records how
// many it had before.
#pragma once

#include <cstdint>

#include "sparsight/io/run_folder.h"

namespace sparsight {

// Adds `epochs` to train.epochs of the run's config.toml, so that resuming it goes on. An extension that was
// interrupted is not made again. Raises UsageError for a run that is not finished, or ends with train.max_steps.
void extend_run(const RunFolder& folder, int64_t epochs);

// Whether the run was extended to `to` epochs after it had `from`.
bool was_extended(const RunFolder& folder, const Json& from, const Json& to);

}  // namespace sparsight
