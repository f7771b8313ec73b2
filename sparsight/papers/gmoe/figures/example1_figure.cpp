// Example 1: in training the colour of a shape goes with its class, in the test it does not.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/papers/gmoe/figures/example1.h"
#include "sparsight/papers/gmoe/figures/image_figures.h"
#include "sparsight/papers/gmoe/figures/small_models.h"
#include "sparsight/reproduce/figure_claims.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/train_job.h"

namespace sparsight::gmoe {
namespace {

constexpr double kFits = 90;  // percent, of the training distribution

struct Example1Options {
  Repeats repeats;
  SmallModels models;
  Example1Shares shares;
  std::vector<int64_t> samples;
  int64_t side = 32, test = 2000;
  void declare(OptionSet& set) {
    repeats.declare(set);
    models.declare(set);
    set.integers("samples", &samples, {2, 10000000}, "numbers of training images");
    set.integer("side", &side, {16, 512}, "side of the images in pixels");
    set.integer("test", &test, {4, 10000000}, "test images, a quarter of each shape and colour");
    set.real("ellipse_red", &shares.ellipse_red, {0, 1}, "share of the training ellipses that are red");
    set.real("square_blue", &shares.square_blue, {0, 1}, "share of the training squares that are blue");
  }
};

Example1Options example1_options(Scale scale) {
  Example1Options options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, 5, 10);
  options.samples = by_scale<std::vector<int64_t>>(scale, {32}, {500, 2000}, {500, 2000, 8000});
  options.models.epochs = by_scale<int64_t>(scale, 1, 15, 60);
  if (scale != Scale::smoke) return options;
  options.models.cnn_widths = {8, 16};
  options.models.width = 16, options.models.depth = 4, options.models.heads = 2, options.models.patch = 8;
  options.models.batch = 16;
  options.side = 16, options.test = 32;
  return options;
}

std::vector<Json> example1_jobs(const FigureRun& run) {
  const Example1Options options = chosen(example1_options, run);
  std::vector<Json> jobs;
  for (const int64_t samples : options.samples)
    for (const char* model : {kSmallCnn, kSmallVit, kSmallMoe}) {
      Json sections = small_model_sections(model, options.models);
      sections["data"] = {{"name", "colored_shapes"},
                          {"side", options.side},
                          {"ellipse_red", options.shares.ellipse_red},
                          {"square_blue", options.shares.square_blue},
                          {"train", samples},
                          {"test", options.test}};
      jobs.push_back({{"model", model}, {"samples", samples}, {"sections", sections}});
    }
  return with_seeds(jobs, options.repeats);
}

Json measure_example1(const Json& job, const FigureRun& run) {
  Json sections = job.at("sections");
  sections["run"] = {{"seed", job.at("seed")}};
  sections["data"]["seed"] = job.at("seed");
  const Json test = train_in_job(sections, run.job_folder).test;
  const Json& data = sections.at("data");
  return example1_measures(test.at("cells"), {data.at("ellipse_red"), data.at("square_blue")});
}

// The reliance of `more` minus that of `less`, at each number of samples, from the two shares of images that it is made
// of.
Claim relies_less(const ResultTable& table, const std::string& text, const char* more, const char* less) {
  std::vector<Margin> margins;
  for (const Json& samples : table.axis_values("samples")) {
    const Json here{{"model", more}, {"samples", samples}}, there{{"model", less}, {"samples", samples}};
    margins.push_back({minus(row_difference(here, there, "together"), row_difference(here, there, "conflicting")),
                       cat("at ", samples.get<int64_t>(), " images")});
  }
  return judge(table, text, margins);
}

std::vector<Claim> example1_claims(const ResultTable& table, const FigureRun& run) {
  const int64_t most = chosen(example1_options, run).samples.back();
  return {all_at_least(table, cat("with ", most, " images all models fit the training distribution to 90 %"),
                       "in_distribution", kFits, {{"samples", most}}),
          above_everywhere(table, "under the uniform test the ViT is more accurate than the CNN",
                           {.ours = kSmallVit, .theirs = kSmallCnn}),
          relies_less(table, "the ViT follows the colour less than the CNN", kSmallCnn, kSmallVit),
          above_everywhere(table, "under the uniform test the ViT-MoE is at least as accurate as the ViT",
                           {.ours = kSmallMoe, .theirs = kSmallVit}, /*ties_count=*/true)};
}

}  // namespace

Figure example1_figure() {
  Figure figure;
  figure.name = "gmoe/example1";
  figure.title = "example 1: shapes whose colour goes with the class in training and not in the test";
  figure.needs = "nothing";
  figure.duration = "smoke 5 s, small 30 min, paper 12 h, on 2 cores";
  figure.axes = {"model", "samples"};
  figure.measures = {{"accuracy", "accuracy, uniform test (%)", 1, {"accuracy_images", true}},
                     {"in_distribution", "accuracy, colours as in training (%)", 1, {"in_distribution_images", true}},
                     {"together", "red ellipses and blue squares (%)", 1, {"together_images", true}},
                     {"conflicting", "blue ellipses and red squares (%)", 1, {"conflicting_images", true}},
                     {"reliance", "red ellipses and blue squares minus these (points)"},
                     {"worst", "worst combination (%)"}};
  figure.settings = make_settings(example1_options);
  figure.jobs = example1_jobs;
  figure.measure = measure_example1;
  figure.expected_seconds = [](const Json& job, const FigureRun& run) {
    const double images_per_second = run.scale == Scale::smoke ? 5000 : job.at("model") == kSmallCnn ? 900 : 430;
    const Json& sections = job.at("sections");
    return 1 + sections.at("train").at("epochs").get<double>() * job.at("samples").get<double>() / images_per_second;
  };
  figure.claims = example1_claims;
  FigureChart accuracy;
  accuracy.x = "samples", accuracy.y = "accuracy", accuracy.series = "model", accuracy.logarithmic_x = true;
  FigureChart reliance = accuracy;
  reliance.y = "reliance";
  figure.charts = {accuracy, reliance};
  figure.notes = {
      "90 % of the training ellipses are red and 50 % of the squares blue, as the paper says; in the test half of "
      "each. "
      "Images are generated with dSprites' factors (scale, orientation, position), not taken from it; both shapes have "
      "the same area.",
      "A model that knows the colour alone has 70 % in training (ellipse if red, square if blue) and 50 % in the test. "
      "Accuracy with colours as in training weighs the four combinations of the test by their shares in training.",
      "Reliance on colour: accuracy where colour and class go together as in training, minus that where they do not; 0 "
      "for a model of shapes, 100 for one of colours.",
      "The paper has no numbers for this example. Claims compare models at the same seeds, images and epochs."};
  figure.run_notes = [](const FigureRun& run) -> std::vector<std::string> {
    const Example1Options options = chosen(example1_options, run);
    return {cat("Epochs: ", options.models.epochs, ". Images of ", options.side, " pixels. The CNN has stages of ",
                shown_widths(options.models.cnn_widths), " channels, the transformers ", options.models.depth,
                " blocks of width ", options.models.width, " and patches of ", options.models.patch,
                " pixels; the ViT-MoE ", options.models.experts, " experts with a cosine router in two of them.")};
  };
  return figure;
}

}  // namespace sparsight::gmoe
