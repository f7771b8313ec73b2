// `sparsight attack`
#pragma once

#include "cli/launch_arguments.h"
#include "sparsight/attacks/run/attack_request.h"

namespace sparsight::cli {

struct AttackArguments {
  AttackRequest request;
  std::string transfer_from;  // the model that is attacked instead, or ""
  bool json = false;
  LaunchArguments launch;
};

void run_attack_verb(const AttackArguments& arguments);

}  // namespace sparsight::cli
