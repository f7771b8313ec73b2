#include <iostream>

#include "cli/verbs.h"

namespace sparsight::cli {

void add_version(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("version", "Print the version");
  verb->callback([] { std::cout << "sparsight " << SPARSIGHT_VERSION << "\n"; });
}

}  // namespace sparsight::cli
