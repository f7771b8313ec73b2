// Every attack, by name.
#pragma once

#include "sparsight/attacks/attack.h"
#include "sparsight/core/registry.h"

namespace sparsight {

using AttackRegistry = Registry<std::shared_ptr<Attack>, AttackContext>;

AttackRegistry& attacks();

}  // namespace sparsight
