// Shared by two-level routers: the tokens of a group of experts. Letters: moe/axes.md; X tokens of
// a group.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

struct GroupMembers {
  at::Tensor token;       // [X] int64, increasing: ties at the second level go to the lowest token
  at::Tensor assignment;  // [X] int64: the index of each in the first level's assignments
};

// of_groups: the first level's decision, whose experts are the groups. Padding (of_groups.valid) is in no group.
GroupMembers group_members(const Routing& of_groups, int64_t group);

}  // namespace sparsight
