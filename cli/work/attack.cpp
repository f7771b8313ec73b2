#include <nlohmann/json.hpp>

#include "cli/cmd_attack.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/run_in_group.h"
#include "sparsight/attacks/run/attack_curve.h"
#include "sparsight/attacks/run/run_transfer.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_curve_text.h"
#include "sparsight/report/attack/attack_text.h"
#include "sparsight/report/attack/transfer_text.h"

namespace sparsight::cli {
namespace {

void transfer_in_group(const AttackArguments& arguments, dist::Group& group) {
  if (listed_epsilons(arguments.request.epsilon).size() > 1)
    fail_usage("--transfer-from takes one epsilon, got ", arguments.request.epsilon);
  run_transfer(
      arguments.request, arguments.transfer_from,
      [&](const Json& result) {
        output() << (arguments.json ? json_text(result) + "\n" : transfer_text(result)) << std::flush;
      },
      group);
  if (group.leads() && !arguments.json)
    output() << "files: " << transfer_folder(arguments.request, arguments.transfer_from) << "\n";
}

void attack_in_group(const AttackArguments& arguments, dist::Group& group) {
  const bool curve = listed_epsilons(arguments.request.epsilon).size() > 1;
  const auto print = [&](const Json& result) {  // also where its files then cannot be written
    if (arguments.json)
      output() << json_text(result) << std::endl;
    else
      output() << (curve ? attack_curve_text(result) : attack_text(result)) << std::flush;
  };
  if (curve)
    run_attack_curve(arguments.request, print, group);
  else
    run_attack(arguments.request, print, group);
  if (group.leads() && !arguments.json) output() << "files: " << attack_folder(arguments.request) << "\n";
}

}  // namespace

void run_attack_verb(const AttackArguments& arguments) {
  begin_interruptible_work();
  run_in_group(arguments.launch, [&](const dist::GroupPtr& group) {
    if (arguments.transfer_from.empty())
      attack_in_group(arguments, *group);
    else
      transfer_in_group(arguments, *group);
  });
}

}  // namespace sparsight::cli
