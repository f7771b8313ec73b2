// Weights of the guided loss; the paper says only that 0.3 works well.
#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/mobile_vmoe/figures/mobile_figures.h"
#include "sparsight/reproduce/figure_parts.h"

namespace sparsight::mobile_vmoe {
namespace {

constexpr double kPaperLambda = 0.3;
constexpr double kTolerated = 1, kRouterAccuracy = 95;  // points, percent

struct LambdaOptions : MobileOptions {
  std::vector<double> weights;
  explicit LambdaOptions(Scale scale) : MobileOptions(mobile_options(scale)) {
    weights = by_scale<std::vector<double>>(scale, {0, 0.3}, {0, 0.3, 1}, {0, 0.1, 0.3, 1});
  }
  void declare(OptionSet& set) {
    MobileOptions::declare(set);
    set.floats("weights", &weights, {0, 1000}, "weights of the guided loss, ascending");
  }
};
LambdaOptions lambda_options(Scale scale) { return LambdaOptions(scale); }

std::vector<Json> lambda_jobs(const FigureRun& run) {
  const LambdaOptions options = chosen(lambda_options, run);
  std::vector<Json> jobs;
  for (const double weight : options.weights) jobs.push_back({{"lambda", weight}});
  return with_seeds(jobs, options.repeats);
}

MobileRow lambda_row(const Json& job, const LambdaOptions& options) {
  MobileModel moe = mobile_model(options, kSemantic);
  moe.lambda = job.at("lambda");
  return {moe, mobile_model(options, kDense)};
}

std::vector<Claim> lambda_claims(const ResultTable& table, const FigureRun& run) {
  const Json paper = {{"lambda", kPaperLambda}};
  std::vector<Margin> good;
  for (const Json& weight : table.axis_values("lambda"))
    if (weight != kPaperLambda)
      good.push_back({[=](const SeedMeans& mean) -> std::optional<double> {
                        const auto lead = between("lambda", kPaperLambda, weight, "accuracy")(mean);
                        return lead ? std::optional(*lead + kTolerated) : std::nullopt;
                      },
                      cat("against ", shown(weight))});
  std::vector<Claim> claims = {
      judge(table, "0.3 is within a point of every other weight, or better", good,
            {.ties = true, .unit = "points above 1 point less", .decimals = 2}),
      judge(table, "without guided and balance loss the experts are used less evenly",
            {{between("lambda", kPaperLambda, 0.0, "entropy")}}, {.unit = "of the entropy / ln E", .decimals = 3}),
      judge(table, "the guided router is right more often than the most used expert is chosen",
            {{[paper](const SeedMeans& mean) -> std::optional<double> {
              const auto right = mean(paper, "router_accuracy"), busiest = mean(paper, "busiest");
              return right && busiest ? std::optional(*right - *busiest) : std::nullopt;
            }}},
            {.unit = "points above the most used expert's share"}),
      every_trial_at_most(table, "with 0.3 every expert is used", "unused", 0, paper)};
  if (run.data.empty())
    claims.push_back(judge(table, "with 0.3 the router's accuracy on the generated hierarchy is above 95 %",
                           {{above(paper, "router_accuracy", kRouterAccuracy)}}, {.unit = "points above 95 %"}));
  return claims;
}

}  // namespace

Figure lambda_figure() {
  Figure figure = mobile_figure("mobile_vmoe/lambda", "weights of the guided loss");
  figure.duration = "smoke 10 s, small 1 h, paper weeks, on 2 cores; less where other figures have trained the models";
  figure.axes = {"lambda"};
  set_options(figure, lambda_options);
  figure.jobs = lambda_jobs;
  measure_rows(figure, lambda_options, lambda_row);
  figure.claims = lambda_claims;
  figure.charts = {
      {.x = "lambda", .y = "accuracy"}, {.x = "lambda", .y = "router_accuracy"}, {.x = "lambda", .y = "entropy"}};
  figure.notes.push_back("With weight 0 nothing balances the experts, and no router accuracy is defined.");
  return figure;
}

}  // namespace sparsight::mobile_vmoe
