#include "sparsight/infer/evaluate_corruptions.h"

#include <algorithm>
#include <numeric>

#include "sparsight/core/config.h"
#include "sparsight/core/named_once.h"
#include "sparsight/data/corruptions/corruptions.h"
#include "sparsight/eval/statistics.h"
#include "sparsight/infer/evaluation_setup.h"
#include "sparsight/report/format.h"
#include "sparsight/report/text_table.h"

namespace sparsight {
namespace {

using corruptions::Corruption;

constexpr int64_t kImageNetClasses = 1000;

std::vector<Corruption> chosen_corruptions(const std::vector<std::string>& names) {
  if (names.empty()) return corruptions::all_corruptions();
  check_named_once(names, "corruption");
  std::vector<Corruption> chosen;
  for (const std::string& name : names) chosen.push_back(corruptions::find_corruption(name));
  return chosen;
}

std::vector<int64_t> chosen_severities(std::vector<int64_t> given) {
  if (given.empty()) {
    given.resize(corruptions::kSeverities);
    std::iota(given.begin(), given.end(), 1);
  }
  check_named_once(given, "severity");
  for (const int64_t severity : given)
    if (severity < 1 || severity > corruptions::kSeverities)
      fail_usage("a severity must be 1 to ", corruptions::kSeverities, ", got ", severity);
  return given;
}

// Behind the steps that change an image's size, before a `normalize`, which bytes do not survive.
TransformPipeline corrupting_transforms(const Json& config, const Corruption& corruption, int64_t severity) {
  Json steps = config.at("transforms").at("eval");
  const auto normalize =
      std::find_if(steps.begin(), steps.end(), [](const Json& step) { return step.value("op", "") == "normalize"; });
  steps.insert(normalize, Json{{"op", "corrupt"}, {"kind", corruption.name}, {"severity", severity}});
  return {steps, "transforms.eval"};
}

double mean_of(const Json& corruptions, const char* key) {
  std::vector<double> values;
  for (const Json& corruption : corruptions) values.push_back(corruption.at(key).get<double>());
  return mean(values);
}

std::string percent_cell(const Json& share) { return fixed(100 * share.get<double>(), 1); }

}  // namespace

Json evaluate_corruptions(const EvaluateRunOptions& options, const CorruptionRequest& request,
                          const MakePredictor& make_predictor, dist::Group& group) {
  const std::vector<Corruption> kinds = chosen_corruptions(request.kinds);
  const std::vector<int64_t> severities = chosen_severities(request.severities);
  if (!options.records.empty() || !options.routing.empty() || !options.save_routing.empty())
    fail_usage("--corrupt evaluates many times; leave out --records, --routing and --save-routing");
  const EvaluationSetup setup(options, make_predictor);
  const LoadedModel& loaded = setup.loaded;
  int64_t evaluated = 0;
  const auto error_with = [&](const TransformPipeline& transforms, const std::string& title) {
    const auto loader = evaluation_loader(setup.data, transforms, read_section<LoaderOptions>(loaded.config, "loader"));
    const Evaluation evaluation = evaluate(setup.predictor, *loader, loaded.shape.classes, loaded.task_loss, setup.bf16,
                                           title.empty() ? "evaluate" : title, {}, group);
    check_evaluation(evaluation, setup, options.split, /*warn=*/title.empty());
    evaluated = evaluation.images;
    return 1 - evaluation.accuracy;
  };
  const double clean = error_with(loaded.eval_transforms, "");
  // The published errors of AlexNet are means over all severities, and mCE is one over all corruptions.
  const bool imagenet = loaded.shape.classes == kImageNetClasses && severities.size() == corruptions::kSeverities;
  Json all = Json::array();
  for (const Corruption& kind : kinds) {
    std::vector<double> errors;
    for (const int64_t severity : severities)
      errors.push_back(error_with(corrupting_transforms(loaded.config, kind, severity),
                                  cat(kind.name, " ", severity, "/", corruptions::kSeverities)));
    all.push_back({{"corruption", kind.name},
                   {"family", kind.family},
                   {"errors", errors},
                   {"error", mean(errors)},
                   {"mce", imagenet ? Json(mean(errors) / kind.alexnet_error) : Json()}});
  }
  const double corrupted = mean_of(all, "error");
  return {
      {"event", "corruptions"},
      {"split", options.split},
      {"weights", loaded.weights},
      {"step", loaded.step},
      {"images", evaluated},
      {"severities", severities},
      {"clean_error", clean},
      {"corruptions", all},
      {"mean_error", corrupted},
      {"relative_error", corrupted - clean},
      {"mce", imagenet && all.size() == corruptions::all_corruptions().size() ? Json(mean_of(all, "mce")) : Json()}};
}

std::string corruption_table(const Json& result) {
  Rows rows(1, {"error (%)"});
  for (const Json& severity : result.at("severities")) rows[0].push_back(cat("severity ", severity.get<int64_t>()));
  rows[0].push_back("mean");
  for (const Json& corruption : result.at("corruptions")) {
    std::vector<std::string> row{corruption.at("corruption")};
    for (const Json& error : corruption.at("errors")) row.push_back(percent_cell(error));
    row.push_back(percent_cell(corruption.at("error")));
    rows.push_back(std::move(row));
  }
  std::string text = aligned(rows);
  text += cat("\nmean corruption error ", percent_cell(result.at("mean_error")), " %, ",
              percent_cell(result.at("relative_error")), " points above the ", percent_cell(result.at("clean_error")),
              " % of clean images\n");
  if (result.at("mce").is_number())
    text += cat("mCE ", percent_cell(result.at("mce")), " % (relative to AlexNet's errors on ImageNet-C)\n");
  return text;
}

}  // namespace sparsight
