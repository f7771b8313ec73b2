#include "cli/cmd_doctor.h"

#include "cli/verbs.h"

namespace sparsight::cli {

void add_doctor(CLI::App& app) {
  add_verb(app, "doctor", "Check this machine and say how to fix problems", "sparsight doctor")->callback(run_doctor);
}

}  // namespace sparsight::cli
