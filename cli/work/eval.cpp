#include <nlohmann/json.hpp>

#include "cli/cmd_eval.h"
#include "cli/output.h"
#include "cli/work/interruptible.h"
#include "cli/work/run_in_group.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/report/table.h"
#include "sparsight/train/trained_predictor.h"

namespace sparsight::cli {
namespace {

CorruptionRequest chosen_corruptions(const EvalArguments& arguments) {
  CorruptionRequest request = arguments.corruptions;
  if (request.kinds == std::vector<std::string>{"all"}) request.kinds.clear();
  for (const std::string& kind : request.kinds)
    if (kind == "all") fail_usage("--corrupt takes all alone, or names of corruptions");
  return request;
}

void evaluate_in_group(const EvalArguments& arguments, const dist::GroupPtr& group) {
  EvaluateRunOptions options = arguments.options;
  if (!arguments.data.empty()) options.overrides.push_back(data_root_override(arguments.data));
  const MakePredictor predictor = [&](const LoadedModel& loaded) {
    if (!options.weights.empty() && predicts_with_more(loaded))
      fail_usage(loaded.algorithm, " predicts with more than the model, which stays in fp32; leave out --weights");
    return trained_predictor(loaded);
  };
  const bool corrupt = !arguments.corruptions.kinds.empty();
  const Json result = corrupt ? evaluate_corruptions(options, chosen_corruptions(arguments), predictor, *group)
                              : evaluate_run(options, predictor, *group);
  if (!group->leads()) return;
  if (arguments.json) {
    output() << json_text(result) << "\n";
  } else if (corrupt) {
    output() << corruption_table(result);
  } else {
    output() << result_table(sort_metrics({result}));
    if (const std::string speed = evaluation_speed_text(result); !speed.empty()) output() << "\n" << speed << "\n";
  }
}

}  // namespace

void run_eval(const EvalArguments& arguments) {
  begin_interruptible_work();
  run_in_group(arguments.launch, [&](const dist::GroupPtr& group) { evaluate_in_group(arguments, group); });
}

}  // namespace sparsight::cli
