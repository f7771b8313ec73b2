// What routers of two levels have in common: the tokens that a group of experts has. Letters: moe/axes.md; X tokens of
// a group.
#pragma once

#include "sparsight/moe/routing.h"

namespace sparsight {

struct GroupMembers {
  at::Tensor token;       // [X] int64, increasing: ties at the second level go to the lowest token
  at::Tensor assignment;  // [X] int64: where in the first level's assignments each stands
};

// of_groups: the first level's decision, whose experts are the groups. Padding (of_groups.valid) is in no group.
GroupMembers group_members(const Routing& of_groups, int64_t group);

}  // namespace sparsight
