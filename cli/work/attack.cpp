#include "cli/cmd_attack.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack_text.h"
#include "sparsight/runs/run_attack.h"

namespace sparsight::cli {

void run_attack_verb(const AttackArguments& arguments) {
  begin_interruptible_work();
  const Json result = run_attack(arguments.request);
  if (arguments.json) {
    output() << json_text(result) << "\n";
    return;
  }
  output() << attack_text(result) << "files: " << attack_folder(arguments.request) << "\n";
}

}  // namespace sparsight::cli
