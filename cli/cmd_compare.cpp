#include <memory>

#include "cli/output.h"
#include "cli/verbs.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/eval/compare_records.h"
#include "sparsight/report/comparison_text.h"

#include <nlohmann/json.hpp>

namespace sparsight::cli {

void add_compare(CLI::App& app) {
  struct Arguments {
    std::string a, b;
    bool json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
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
  verb->callback([arguments] {
    const RecordColumns columns{.logits = false};
    const Json result = compare_records(read_records(records_folder(arguments->a), columns),
                                        read_records(records_folder(arguments->b), columns));
    output() << (arguments->json ? json_text(result) + "\n" : comparison_text(result));
  });
}

}  // namespace sparsight::cli
