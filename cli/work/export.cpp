#include <nlohmann/json.hpp>

#include "cli/cmd_export.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/report/format.h"
#include "sparsight/train/trained_predictor.h"

namespace sparsight::cli {

void run_export(const ExportArguments& arguments) {
  begin_interruptible_work();
  ExportRequest request = arguments.request;
  if (!arguments.data.empty()) request.overrides.push_back(data_root_override(arguments.data));
  const Json result = export_model(
      request, [&](const LoadedModel& loaded) { refuse_more_than_model(loaded, request.path, "exported"); });
  if (arguments.json) {
    output() << json_text(result) << "\n";
    return;
  }
  output() << result["file"].get<std::string>() << ": " << result["weights"].get<std::string>() << ", "
           << grouped(result["bytes"].get<int64_t>()) << " bytes\n";
  if (result.contains("smoothed_layers"))
    output() << "outlier channels smoothed in front of " << result["smoothed_layers"].get<int64_t>()
             << " linear layers\n";
  if (result.contains("types")) {
    std::vector<std::string> parts;
    for (const auto& [type, count] : result["types"].items()) parts.push_back(cat(count, " in ", type));
    output() << "steps with matrices: " << join(parts) << "\n";
  }
  if (!result.contains("agreement")) return;
  output() << "accuracy " << percent(result["accuracy"].get<double>()) << ", in fp32 "
           << percent(result["fp32_accuracy"].get<double>()) << "; the same class on "
           << percent(result["agreement"].get<double>()) << " of " << grouped(result["images"].get<int64_t>())
           << " images of the " << split_name(result["split"].get<std::string>()) << " split\n";
}

}  // namespace sparsight::cli
