#include "cli/cmd_doctor.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {

void add_doctor(CLI::App& app) {
  const auto run = std::make_shared<std::string>();
  CLI::App* verb =
      add_verb(app, "doctor", "Check this machine, or how a run uses its experts, and say how to fix problems",
               "sparsight doctor\n"
               "sparsight doctor runs/demo");
  verb->add_option("run", *run, "Run folder to check instead of this machine")->type_name("RUN");
  verb->callback([run] { run_doctor(*run); });
}

}  // namespace sparsight::cli
