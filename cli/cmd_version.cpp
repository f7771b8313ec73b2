#include "cli/cmd_version.h"

#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/machine.h"

namespace sparsight::cli {

void add_version(CLI::App& app) {
  add_verb(app, "version", "Print the version and build information", "sparsight version")->callback(run_version);
}

void print_version(const std::string& torch_version, const std::string& instruction_set) {
  output() << "sparsight " << SPARSIGHT_VERSION << "\nlibtorch " << torch_version << "\ncompiler " << compiler_name()
           << "\ninstruction set " << instruction_set << "\n";
}

}  // namespace sparsight::cli
