#include "cli/cmd_inspect.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {

void add_inspect(CLI::App& app) {
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App* verb = add_verb(app, "inspect", "Show what an exported model holds, and verify its checksums",
                            "sparsight inspect runs/demo/model.sparsight\n"
                            "sparsight inspect model.sparsight --json");
  verb->add_option("file", arguments->file, "File written by sparsight export")->required()->type_name("FILE");
  verb->add_flag("--json", arguments->json, "Print all of it as one JSON object");
  verb->callback([arguments] { run_inspect(*arguments); });
}

}  // namespace sparsight::cli
