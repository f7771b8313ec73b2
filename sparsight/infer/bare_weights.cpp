#include "sparsight/infer/bare_weights.h"

#include <charconv>
#include <filesystem>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/io/weight_names.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/adapt_weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/normalize.h"

namespace sparsight {
namespace {

std::vector<double> numbers_of_list(const std::string& text) {
  std::vector<double> numbers;
  const char *at = text.data(), *end = text.data() + text.size();
  while (at != end) {
    double value = 0;
    const auto [stop, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (stop != end && *stop != ',')) return {};
    numbers.push_back(value);
    at = stop == end ? end : stop + 1;
  }
  return numbers;
}

// The sections that a model and its data need; how a model is trained does not matter.
Json bare_config(const BareWeights& bare) {
  const std::vector<Section> sections = model_sections();
  const Json tree = Config::from_file(bare.config).tree();
  Config used = Config::from_text("", "");
  for (const Section& section : sections)
    if (tree.contains(section.name))
      for (const auto& [key, value] : tree.at(section.name).items()) used.set(section.name, key, value, bare.config);
  return resolve(overridden(used, bare.overrides, sections), sections);
}

// Of the layer that classifies, under the names of timm and torchvision; 0 if there is none.
int64_t head_classes(const NamedTensors& tensors) {
  for (const char* name : {"head.weight", "head.fc.weight", "fc.weight", "classifier.weight"})
    for (const auto& [key, tensor] : tensors)
      if (key == name && tensor.dim() == 2) return tensor.size(0) == 1 ? 2 : tensor.size(0);
  return 0;
}

PixelStatistics bare_statistics(const BareWeights& bare, const NamedTensors& tensors, const TransformPipeline& eval) {
  if (!bare.normalize.empty()) return parse_normalize(bare.normalize);
  if (PixelStatistics own = pixel_statistics_of(tensors); !own.empty()) return own;
  if (!eval.statistics().empty()) return eval.statistics();
  fail_usage(printable(bare.path), " does not say how its pixels are normalised, nor does [transforms] eval of ",
             printable(bare.config), "; give --normalize imagenet, MEAN:STD (of pixels in 0..1) or none");
}

void check_bare_classes(const BareWeights& bare, const NamedTensors& tensors, int64_t data_classes,
                        const std::string& data) {
  const int64_t head = head_classes(tensors);
  if (head == 0 && bare.classes == 0)
    fail_usage(printable(bare.path), " does not say how many classes it has (no head.weight, fc.weight or ",
               "classifier.weight); give --classes");
  if (head > 0 && bare.classes > 0 && head != bare.classes)
    fail_usage("--classes ", bare.classes, ": ", printable(bare.path), " has ", head, " classes");
  if (const int64_t classes = head > 0 ? head : bare.classes; classes != data_classes)
    fail(printable(bare.path), " has ", classes, " classes, the dataset ", printable(data), " of [data] ", data_classes,
         "; name the dataset that it was trained for");
}

}  // namespace

PixelStatistics parse_normalize(const std::string& text) {
  if (text == "none") return {};
  NormalizeOptions options;
  OptionSet set;
  options.declare(set);
  Json settings{{"preset", text}};
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    settings = {{"mean", numbers_of_list(text.substr(0, colon))}, {"std", numbers_of_list(text.substr(colon + 1))}};
    if (settings["mean"].empty() || settings["std"].empty())
      fail_usage("--normalize ", printable(text), ": MEAN:STD needs one number or one per channel on each side, such ",
                 "as 0.5:0.25 or 0.48,0.46,0.41:0.23,0.22,0.23");
  }
  assign(set, settings, "--normalize");
  return pixel_statistics(options);
}

void check_model_exists(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    fail(printable(path), " does not exist; name a run folder, a checkpoint or a file of weights");
}

bool is_bare_weights(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored) || path.ends_with(".toml")) return false;
  if (!path.ends_with(".safetensors")) return path.ends_with(".pt") || path.ends_with(".pth");
  const auto metadata = read_safetensors_metadata(path);
  const auto format = metadata.find("format");
  return format == metadata.end() || !format->second.starts_with("sparsight-");
}

LoadedModel load_bare_weights(const BareWeights& bare) {
  if (bare.config.empty())
    fail_usage(printable(bare.path), " has weights alone; give --config with the [model] that they are of and the ",
               "[data] to use");
  LoadedModel loaded;
  loaded.path = bare.path;
  loaded.config = bare_config(bare);
  loaded.eval_transforms =
      TransformPipeline(read_section<TransformOptions>(loaded.config, "transforms").eval, "transforms.eval");
  NamedTensors tensors = read_weights(bare.path);
  const PixelStatistics pixels = bare_statistics(bare, tensors, loaded.eval_transforms);
  const auto seed = static_cast<uint64_t>(read_section<RunOptions>(loaded.config, "run").seed);
  loaded.data = make_component(data_sets(), loaded.config, "data", DataContext{seed}).train->info();
  check_bare_classes(bare, tensors, std::ssize(loaded.data.classes), loaded.data.name);
  loaded.shape = shape_after(loaded.eval_transforms, loaded.data);
  loaded.model = make_model(loaded.config, loaded.shape, pixels);
  std::erase_if(tensors, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  LoadOptions options;
  options.strict = true;
  options.adapt = weight_adapter(*loaded.model);
  try {
    load_weights(*loaded.model, with_later_buffers(std::move(tensors), *loaded.model), options);
  } catch (const Error& error) {
    fail(printable(bare.path), " does not fit [model] of ", printable(bare.config), ": ", error.what());
  }
  loaded.model->freeze(WeightType::fp32);
  return loaded;
}

}  // namespace sparsight
