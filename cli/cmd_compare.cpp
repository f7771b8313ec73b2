#include "cli/cmd_compare.h"

#include <memory>

#include "cli/verbs.h"

namespace sparsight::cli {

void add_compare(CLI::App& app) {
  const auto arguments = std::make_shared<CompareArguments>();
  CLI::App* verb =
      add_verb(app, "compare", "Compare two models image by image: McNemar's test on their records, and their routing",
               "sparsight eval runs/dense --records runs/dense/records\n"
               "sparsight eval runs/moe --records runs/moe/records\n"
               "sparsight compare runs/moe runs/dense\n"
               "sparsight compare runs/moe runs/dense --json");
  verb->add_option("a", arguments->a, "Records of the first model (sparsight eval --records), or its run folder")
      ->required()
      ->type_name("FOLDER");
  verb->add_option("b", arguments->b, "Records of the second model on the same images, or its run folder")
      ->required()
      ->type_name("FOLDER");
  verb->add_flag("--json", arguments->json, "Print the result as one JSON object");
  verb->callback([arguments] { run_compare(*arguments); });
}

}  // namespace sparsight::cli
