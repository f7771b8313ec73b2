// `sparsight attack`
#pragma once

#include "cli/launch_arguments.h"
#include "sparsight/attacks/run/attack_request.h"

namespace sparsight::cli {

struct AttackArguments {
  AttackRequest request;
  bool json = false;
  LaunchArguments launch;
};

void run_attack_verb(const AttackArguments& arguments);

}  // namespace sparsight::cli
