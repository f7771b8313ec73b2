// `sparsight attack`
#pragma once

#include "sparsight/attacks/run/attack_request.h"

namespace sparsight::cli {

struct AttackArguments {
  AttackRequest request;
  bool json = false;
};

void run_attack_verb(const AttackArguments& arguments);

}  // namespace sparsight::cli
