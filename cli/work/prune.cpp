#include <nlohmann/json.hpp>

#include "cli/cmd_prune.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/infer/prune_run.h"
#include "sparsight/report/format.h"
#include "sparsight/report/text_table.h"
#include "sparsight/train/trained_predictor.h"

namespace sparsight::cli {
namespace {

// "stays as 2", "removed", "merged into 5", by the numbers that the experts had.
std::string fate(const Json& expert, const Json& experts) {
  if (expert["into"].is_null()) return "removed";
  if (expert["stays"].get<bool>())
    return expert["into"] == expert["expert"] ? "stays" : cat("stays, as ", expert["into"].get<int64_t>());
  for (const Json& other : experts)
    if (other["stays"].get<bool>() && other["into"] == expert["into"])
      return cat("merged into ", other["expert"].get<int64_t>());
  return "merged";
}

std::string expert_table(const Json& layer, double accuracy) {
  const Json& experts = layer["experts"];
  const bool each = experts[0].contains("without");
  Rows rows{{"expert", "load", "share", "becomes"}};
  if (each) rows[0].emplace_back("accuracy without it");
  int64_t left = 0;
  for (const Json& expert : experts) {
    left += expert["stays"].get<bool>() ? 1 : 0;
    rows.push_back({cat(expert["expert"].get<int64_t>()), grouped(static_cast<int64_t>(expert["load"].get<double>())),
                    percent(expert["share"].get<double>(), 1), fate(expert, experts)});
    if (!each) continue;
    const auto without = number(expert["without"], "accuracy");
    rows.back().push_back(without ? cat(percent(*without), " (", signed_fixed(100 * (*without - accuracy), 2), ")")
                                  : "does not work");
  }
  std::vector<std::string> of;
  for (const Json& path : layer["of"]) of.push_back(path.get<std::string>());
  const std::string name = layer["layer"], layers = join(of);
  return cat(name, layers == name ? "" : " (" + layers + ")", ": ", left, " of ", experts.size(), " experts stay\n",
             aligned(rows));
}

std::string pruning_text(const Json& result) {
  const double accuracy = result["accuracy_before"];
  std::string text;
  for (const Json& layer : result["layers"]) text += expert_table(layer, accuracy);
  text += cat("accuracy ", percent(accuracy), " before, ", percent(result["accuracy_after"].get<double>()),
              " after; the same class on ", percent(result["agreement"].get<double>()), " of ",
              grouped(result["images"].get<int64_t>()), " images of the ",
              split_name(result["split"].get<std::string>()), " split\n");
  const bool same = result["parameters_before"] == result["parameters_after"];
  text += cat("these answers ",
              same                          ? "stay: no expert leaves"
              : result["exact"].get<bool>() ? "stay, up to rounding: no image chose an expert that leaves"
                                            : "may change",
              " (largest difference of a logit: ", result["largest_difference"].get<double>(), ")\n");
  return text + cat("parameters: ", grouped(result["parameters_before"].get<int64_t>()), " before, ",
                    grouped(result["parameters_after"].get<int64_t>()),
                    " after; bytes: ", grouped(result["bytes_before"].get<int64_t>()), " before, ",
                    grouped(result["bytes_after"].get<int64_t>()), " after\n");
}

}  // namespace

void run_prune(const PruneArguments& arguments) {
  begin_interruptible_work();
  PruneRequest request = arguments.request;
  if (!arguments.data.empty()) request.overrides.push_back(data_root_override(arguments.data));
  const Json result =
      prune_run(request, [&](const LoadedModel& loaded) { refuse_more_than_model(loaded, request.path, "pruned"); });
  if (arguments.json) {
    output() << json_text(result) << "\n";
    return;
  }
  output() << pruning_text(result);
  if (result["out"].is_null())
    output() << "nothing was written; --out DIR writes the run\n";
  else
    output() << "run folder: " << result["out"].get<std::string>() << "\n";
}

}  // namespace sparsight::cli
