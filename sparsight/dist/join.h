// How a process joins its group: by the variables that torchrun sets, and `sparsight train --processes` too: RANK,
// WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_USE_AGENT_STORE. Instead of an
// address, SPARSIGHT_STORE may name a file on this machine by which its processes find each other.
// SPARSIGHT_RUN_TOKEN, else torchrun's TORCHELASTIC_RUN_ID, is a text that the ranks of a run share and others do not
// have: ranks with another one do not join. SPARSIGHT_DIST_TIMEOUT: seconds that a rank may be late (600).
#pragma once

#include "sparsight/dist/group.h"

namespace sparsight::dist {

// Whether this build has c10d's gloo backend.
bool is_available();

// The group of the environment; without RANK and WORLD_SIZE, a group of one. Raises UsageError for variables that make
// no sense, Error where the others cannot be reached or the build has no backend.
GroupPtr join_group();

}  // namespace sparsight::dist
