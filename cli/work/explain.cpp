#include "sparsight/infer/explain_run.h"

#include <filesystem>

#include "cli/cmd_explain.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/path_text.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/shard_index.h"
#include "sparsight/report/format.h"
#include "sparsight/report/report.h"
#include "sparsight/report/run/explain_folder.h"
#include "sparsight/report/run/superclass_text.h"
#include "sparsight/report/table.h"

namespace sparsight::cli {
namespace {

// Else it is a frozen model or a checkpoint in several files, which has no report.
bool is_run(const std::string& path) { return std::filesystem::is_directory(path) && !is_sharded(path); }

// Given images leave the explanation of the run's dataset as it is.
std::string output_folder(const ExplainArguments& arguments) {
  const ExplainRequest& request = arguments.request;
  if (!arguments.out.empty()) return arguments.out;
  if (!is_run(request.run)) return without_slashes_at_end(request.run) + ".explained";
  return request.paths.empty() ? explain_folder(request.run) : explain_images_folder(request.run);
}

void print_parts(const Explanation& explanation) {
  if (const std::string table = class_expert_table(explanation.part_tables(), explanation.part_rows(), "part");
      !table.empty())
    output() << table << "\n";
  for (const Json& report : explanation.part_experts) {
    const Json& information = report["information"];
    output() << "experts of " << report["layer"].get<std::string>() << " tell about the part"
             << (report["domain"].is_null() ? "" : " in " + printable(report["domain"].get<std::string>())) << ": "
             << fixed(information["bits"].get<double>(), 3)
             << " bits (shuffled parts: " << fixed(information["shuffled"].get<double>(), 3) << ")\n";
  }
  if (!explanation.part_experts.empty()) output() << "\n";
}

}  // namespace

void run_explain(const ExplainArguments& arguments) {
  begin_interruptible_work();
  const Explanation explanation = explain_run(arguments.request);
  const Json json = write_explanation(output_folder(arguments), explanation);
  const std::string report =
      arguments.out.empty() && is_run(arguments.request.run) ? write_report(arguments.request.run) : "";
  if (arguments.json) {
    output() << json_text(json, 2) << "\n";
    return;
  }
  output() << explanation.source << "\n";
  if (const auto accuracy = explanation.accuracy())
    output() << "accuracy " << percent(accuracy) << " of " << grouped(explanation.labelled) << " images\n";
  if (const std::string table = layer_table(explanation.layers); !table.empty()) output() << "\n" << table << "\n";
  if (const Rows rows = superclass_rows(explanation.super_class_of, explanation.super_classes, explanation.classes);
      rows.size() > 1 && explanation.guided)
    output() << aligned(rows) << "\n";
  const std::string title = explanation.by_predicted_class() ? "predicted class" : "class";
  if (const std::string table = class_expert_table(explanation.class_expert, explanation.classes, title,
                                                   expert_names(explanation.expert_super_classes()));
      !table.empty())
    output() << table << "\n";
  if (const std::string table = patch_routing_table(explanation.patch_routing, explanation.classes); !table.empty())
    output() << table << "\n";
  if (const std::string table = class_expert_table(explanation.domain_expert, explanation.domains, "domain");
      !table.empty())
    output() << table << "\n";
  print_parts(explanation);
  output() << "pictures: " << printable(output_folder(arguments)) << "\n";
  if (!report.empty()) output() << "report:   " << printable(report) << "\n";
}

}  // namespace sparsight::cli
