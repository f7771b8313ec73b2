// How the ranks of a group have the experts of a model between them: n successive ranks together have all of them, each
// a part of its own, and every n-th rank has the same ones.
#pragma once

#include "sparsight/dist/group.h"

namespace sparsight::dist {

struct ExpertRanks {
  GroupPtr parts = std::make_shared<Group>();   // n: rank r of it has the r-th part of every layer's experts
  GroupPtr copies = std::make_shared<Group>();  // R / n ranks with the same experts
};

// all: of R ranks. parts: n. Collective. Raises UsageError where n does not divide R.
ExpertRanks share_out_experts(const GroupPtr& all, int64_t parts);

}  // namespace sparsight::dist
