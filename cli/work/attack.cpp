#include <nlohmann/json.hpp>

#include "cli/cmd_attack.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/run_in_group.h"
#include "sparsight/attacks/run/attack_curve.h"
#include "sparsight/attacks/run/run_attack.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_curve_text.h"
#include "sparsight/report/attack/attack_text.h"

namespace sparsight::cli {
namespace {

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
  run_in_group(arguments.launch, [&](const dist::GroupPtr& group) { attack_in_group(arguments, *group); });
}

}  // namespace sparsight::cli
