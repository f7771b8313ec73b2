// The statement behind figure 1b: attention is a low-pass filter, convolution a high-pass one.
#include <ATen/ops/stack.h>

#include <nlohmann/json.hpp>

#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/data/register_data.h"
#include "sparsight/infer/loaded_model.h"
#include "sparsight/papers/gmoe/figures/block_spectra.h"
#include "sparsight/papers/gmoe/figures/image_figures.h"
#include "sparsight/papers/gmoe/figures/kept_weights.h"
#include "sparsight/papers/gmoe/figures/small_models.h"
#include "sparsight/reproduce/figure_parts.h"
#include "sparsight/reproduce/figure_settings.h"
#include "sparsight/reproduce/margins.h"

namespace sparsight::gmoe {
namespace {

const std::vector<DataChoice> kFrequencyData = {{"cifar100", "glyphs for CIFAR-100"}};

struct FrequencyOptions {
  Repeats repeats;
  SmallModels models;
  int64_t train_images = 0, test_images = 200, side = 32;
  void declare(OptionSet& set) {
    repeats.declare(set);
    models.declare(set);
    set.integer("train_images", &train_images, {0, 100000000}, "training images; 0: all, or 10000 generated ones");
    set.integer("test_images", &test_images, {1, 100000}, "test images whose feature maps are measured");
    set.integer("side", &side, {16, 512}, "side of generated images in pixels; CIFAR's have 32");
  }
};

FrequencyOptions frequency_options(Scale scale) {
  FrequencyOptions options;
  options.repeats.trials = by_scale<int64_t>(scale, 1, 3, 5);
  options.models.epochs = by_scale<int64_t>(scale, 1, 3, 50);
  if (scale == Scale::small) options.train_images = 5000;
  if (scale != Scale::smoke) return options;
  options.models.cnn_widths = {8, 16};
  options.models.width = 16, options.models.depth = 4, options.models.heads = 2, options.models.patch = 4;
  options.models.batch = 16;
  options.train_images = 32, options.test_images = 16, options.side = 16;
  return options;
}

Json data_json(const FrequencyOptions& options, const FigureRun& run) {
  if (run.data.empty())
    return {{"name", "glyphs"},
            {"classes", 10},
            {"super_classes", 0},
            {"side", options.side},
            {"train", options.train_images > 0 ? options.train_images : 10000},
            {"validation", 1},
            {"test", options.test_images}};
  return {{"name", "cifar100"},
          {"root", real_folder(kFrequencyData[0], run)},
          {"validation", 0},
          {"train_limit", options.train_images},
          {"test_limit", options.test_images}};
}

// The numbers of the blocks of a CNN that keep the shape: the first of all, and the second of each stage.
std::vector<int64_t> cnn_layers(const SmallModels& models) {
  std::vector<int64_t> layers{0};
  for (int64_t stage = 0; stage < std::ssize(models.cnn_widths); ++stage) layers.push_back(2 * stage + 1);
  return layers;
}

std::vector<Json> frequency_jobs(const FigureRun& run) {
  const FrequencyOptions options = chosen(frequency_options, run);
  std::vector<Json> jobs;
  const auto add = [&](const char* model, const char* operation, int64_t layer) {
    jobs.push_back({{"operation", cat(model, " ", operation)},
                    {"layer", layer},
                    {"model", model},
                    {"kind", operation},
                    {"sections", small_model_sections(model, options.models)},
                    {"train_images", options.train_images},
                    {"test_images", options.test_images},
                    {"side", options.side}});
  };
  for (const char* model : {kSmallVit, kSmallMoe})
    for (const char* operation : {kAttention, kMlp})
      for (int64_t layer = 0; layer < options.models.depth; ++layer) add(model, operation, layer);
  for (const int64_t layer : cnn_layers(options.models)) add(kSmallCnn, kConvolution, layer);
  return with_seeds(jobs, options.repeats);
}

Json measure_frequency(const Json& job, const FigureRun& run) {
  Json sections = job.at("sections");
  sections["data"] = data_json(chosen(frequency_options, run), run);
  sections["run"] = {{"seed", job.at("seed")}};
  const LoadedModel loaded = load_model(trained_weights(sections, run));
  const DataSplits splits = make_component(data_sets(), loaded.config, "data", DataContext{0});
  std::vector<at::Tensor> images;
  for (int64_t i = 0; i < splits.test->size(); ++i) images.push_back(model_image(loaded, splits.test->get(i).image));
  for (const BlockSpectrum& block : block_spectra(*loaded.model, at::stack(images)))
    if (block.operation == job.at("kind") && block.layer == job.at("layer"))
      return {{"before", block.before},
              {"after", block.after},
              {"change", block.change()},
              {"operation_change", block.operation_change()}};
  fail("there is no ", job.at("operation").get<std::string>(), " in block ", job.at("layer").get<int64_t>());
}

// The mean of a measure over the layers of all models with this kind of operation.
Statistic mean_over_layers(const ResultTable& table, const char* operation, const char* measure, double sign) {
  std::vector<Json> rows;
  for (const ResultRow& row : table.rows)
    if (row.settings.at("operation").get<std::string>().ends_with(operation)) rows.push_back(row.settings);
  return [=](const SeedMeans& mean) -> std::optional<double> {
    double sum = 0;
    for (const Json& row : rows) {
      const auto value = mean(row, measure);
      if (!value) return std::nullopt;
      sum += *value;
    }
    if (rows.empty()) return std::nullopt;
    return sign * sum / static_cast<double>(rows.size());
  };
}

std::vector<Claim> frequency_claims(const ResultTable& table, const FigureRun&) {
  const MarginTest test{.unit = "nats", .decimals = 2};
  const auto claim = [&](const std::string& text, const char* operation, const char* measure, double sign) {
    return judge(table, text, {{mean_over_layers(table, operation, measure, sign), {}}}, test);
  };
  const Statistic attention = mean_over_layers(table, kAttention, "change", -1),
                  mlp = mean_over_layers(table, kMlp, "change", 1);
  const Statistic apart = [=](const SeedMeans& mean) -> std::optional<double> {
    const auto falls = attention(mean), rises = mlp(mean);
    return falls && rises ? std::optional(*falls + *rises) : std::nullopt;
  };
  return {
      claim("attention lowers the high frequencies of the feature maps, on average over blocks", kAttention, "change",
            -1),
      claim("convolution blocks raise them", kConvolution, "change", 1),
      claim("the output of attention has less of them than its input", kAttention, "operation_change", -1),
      claim("the output of a convolution has more of them than its input", kConvolution, "operation_change", 1),
      judge(table, "attention lowers them more than the MLP after it", {{apart, {}}}, test),
  };
}

}  // namespace

Figure frequency_figure() {
  Figure figure;
  figure.name = "gmoe/frequency";
  figure.title = "figure 1b: attention as a low-pass, convolution as a high-pass filter";
  figure.needs = "CIFAR-100";
  figure.duration = "smoke 10 s, small 15 min, paper 2 days, on 2 cores";
  figure.axes = {"operation", "layer"};
  figure.measures = {{"change", "change of the high frequencies (nats)", 2},
                     {"operation_change", "output of the operation against its input (nats)", 2},
                     {"before", "before the block (nats)", 2},
                     {"after", "after it (nats)", 2}};
  figure.data = kFrequencyData;
  figure.settings = make_settings(frequency_options);
  figure.jobs = frequency_jobs;
  figure.measure = measure_frequency;
  figure.claims = frequency_claims;
  FigureChart chart;
  chart.x = "layer", chart.y = "change", chart.series = "operation";
  figure.charts = {chart};
  figure.notes = {
      "As Park and Kim 2022, \"How Do Vision Transformers Work?\": the log amplitude of the Fourier transform of a "
      "feature map, mean over images and channels, on the diagonal of the spectrum, at the highest frequency minus at "
      "frequency 0. A block that lowers it is a low-pass filter.",
      "Feature maps are those of the residual stream, with what a block adds; of transformers the patch tokens without "
      "the class token. The output of the operation alone: attention, MLP or MoE layer against their normalised input, "
      "and the first convolution of a block against the block's input.",
      "Differs from the paper: it cites the statement and does not measure it. These models are small and trained for "
      "minutes; the CNN's blocks that change the shape of their map are left out."};
  return figure;
}

}  // namespace sparsight::gmoe
