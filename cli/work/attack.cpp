#include <nlohmann/json.hpp>

#include "cli/cmd_attack.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack_curve_text.h"
#include "sparsight/report/attack_text.h"
#include "sparsight/runs/attack_curve.h"
#include "sparsight/runs/run_attack.h"

namespace sparsight::cli {

void run_attack_verb(const AttackArguments& arguments) {
  begin_interruptible_work();
  const bool curve = listed_epsilons(arguments.request.epsilon).size() > 1;
  const Json result = curve ? run_attack_curve(arguments.request) : run_attack(arguments.request);
  if (arguments.json) {
    output() << json_text(result) << "\n";
    return;
  }
  output() << (curve ? attack_curve_text(result) : attack_text(result)) << "files: " << attack_folder(arguments.request)
           << "\n";
}

}  // namespace sparsight::cli
