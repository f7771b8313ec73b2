#include "sparsight/infer/bare_weights.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/catalogue/run_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/input_file.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/imagenet_labels.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/infer/derived_model.h"
#include "sparsight/infer/frozen_model.h"
#include "sparsight/infer/model_path.h"
#include "sparsight/io/shard_index.h"
#include "sparsight/io/torch_pickle.h"
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

// The sections of the file that a model and its data need; how a model is trained does not matter.
Config given_config(const std::string& file, const std::vector<Section>& sections) {
  const Json tree = Config::from_file(file).tree();
  Config used = Config::from_text("", "");
  for (const Section& section : sections)
    if (tree.contains(section.name))
      for (const auto& [key, value] : tree.at(section.name).items()) used.set(section.name, key, value, file);
  return used;
}

bool sets(const std::vector<std::string>& overrides, const std::string& setting) {
  return std::ranges::any_of(overrides, [&](const std::string& text) { return text.starts_with(setting); });
}

// A dataset that is named by its folder alone is one of image folders.
Config derived_config(const DerivedModel& derived, const ModelRequest& request) {
  Config used = Config::from_text("", "");
  for (const auto& [key, value] : derived.settings.items()) used.set("model", key, value, request.path);
  used.set("transforms", "eval", derived.eval_transforms, request.path);
  if (!sets(request.overrides, "data.name=")) used.set("data", "name", "folder", request.path);
  return used;
}

void check_derived(const DerivedModel& derived, const ModelRequest& request) {
  if (derived.settings.value("name", "") == "vit" && !derived.settings.contains("heads") &&
      !sets(request.overrides, "model.heads="))
    fail_usage(printable(request.path), " does not say how many attention heads a width of ",
               derived.settings["width"].dump(), " has; give --set model.heads=N");
  if (request.needs_data && !sets(request.overrides, "data."))
    fail_usage(printable(request.path), " has weights alone; name the dataset to use: --data FOLDER with a folder of ",
               "images for each class, --set data.name=NAME, or --config with [data]");
}

// The rows of the layer that classifies, under the names of timm and torchvision; 0 if there is none.
int64_t head_classes(const NamedTensors& tensors) {
  for (const char* name : {"head.weight", "head.fc.weight", "fc.weight", "classifier.weight", "classifier.1.weight"})
    for (const auto& [key, tensor] : tensors)
      if (key == name && tensor.dim() == 2) return tensor.size(0) == 1 ? 2 : tensor.size(0);
  return 0;
}

// derived: or null, where a configuration was given.
PixelStatistics bare_statistics(const ModelRequest& request, const NamedTensors& tensors, const TransformPipeline& eval,
                                const DerivedModel* derived) {
  if (!request.bare.normalize.empty()) return parse_normalize(request.bare.normalize);
  if (PixelStatistics own = find_pixel_statistics(tensors); !own.empty()) return own;
  if (!eval.statistics().empty()) return eval.statistics();
  if (!derived)
    fail_usage(printable(request.path), " does not say how its pixels are normalised, nor does [transforms] eval of ",
               printable(request.bare.config), "; give --normalize imagenet, MEAN:STD (of pixels in 0..1) or none");
  if (std::ssize(derived->pixels.mean) != derived->channels)
    fail_usage(printable(request.path), " does not say how pixels of ", derived->channels,
               " channels are normalised; give --normalize MEAN:STD (of pixels in 0..1) or none");
  log_warning(printable(request.path), " does not say how its pixels are normalised: ", to_text(derived->pixels),
              " is assumed; --normalize changes it (half for timm's augreg weights)");
  return derived->pixels;
}

// How many classes the model has. Raises UsageError where neither the weights nor --classes say it.
int64_t bare_classes(const ModelRequest& request, const NamedTensors& tensors) {
  const int64_t head = head_classes(tensors), given = request.bare.classes;
  if (head == 0 && request.bare.config.empty())
    fail_usage(printable(request.path), " has no head (head.weight, fc.weight or classifier.weight), so it knows no ",
               "classes; train one with sparsight train --init-from");
  if (head == 0 && given == 0)
    fail_usage(printable(request.path), " does not say how many classes it has (no head.weight, fc.weight or ",
               "classifier.weight); give --classes");
  if (head > 0 && given > 0 && head != given)
    fail_usage("--classes ", given, ": ", printable(request.path), " has ", head, " classes");
  return head > 0 ? head : given;
}

DataInfo info_of_data(const Json& config) {
  const auto seed = static_cast<uint64_t>(read_section<RunOptions>(config, "run").seed);
  return make_component(data_sets(), config, "data", DataContext{seed}).train->info();
}

// Images of any size, of classes that have numbers for names.
DataInfo info_without_data(int64_t classes, int64_t channels) {
  DataInfo info{.name = "images", .domains = {"images"}, .channels = channels};
  for (int64_t k = 0; k < classes; ++k) info.classes.push_back(cat("class ", k));
  return info;
}

void name_classes(DataInfo& info, const std::string& labels, const std::string& path) {
  if (labels.empty()) return;
  std::vector<std::string> names = read_labels(labels);
  if (names.size() != info.classes.size())
    fail("--labels ", printable(labels), " names ", names.size(), " classes, ", printable(path), " has ",
         info.classes.size());
  info.classes = std::move(names);
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

std::vector<std::string> read_labels(const std::string& name) {
  if (name == "imagenet1k") return imagenet1k_labels();
  constexpr size_t kMaxBytes = size_t{64} << 20;
  std::error_code ignored;
  if (!std::filesystem::exists(name, ignored))
    fail("--labels ", printable(name), ": no such file; give a file with one name a line, or imagenet1k");
  std::vector<std::string> names;
  std::istringstream text(read_file(name, kMaxBytes));
  for (std::string line; std::getline(text, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(line);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  if (names.empty()) fail("--labels ", printable(name), " is empty; give a file with one name a line");
  return names;
}

bool is_bare_weights(const std::string& path) {
  std::error_code ignored;
  if (!is_sharded(path)) {
    if (!std::filesystem::is_regular_file(path, ignored) || path.ends_with(".toml") || is_frozen_model(path))
      return false;
    if (is_torch_pickle(path)) return true;
  }
  const auto metadata = read_checkpoint_metadata(path);
  const auto format = metadata.find("format");
  return format == metadata.end() || !format->second.starts_with("sparsight-");
}

LoadedModel load_model_or_weights(const ModelRequest& request) {
  check_model_exists(request.path);
  if (request.pack_cache && !is_frozen_model(request.path))
    fail_usage("--pack-cache is for models that sparsight export wrote; ", printable(request.path), " is none");
  if (is_bare_weights(request.path)) return load_bare_weights(request);
  const BareOptions& bare = request.bare;
  for (const auto& [flag, given] : {std::pair{"--config", !bare.config.empty()},
                                    {"--normalize", !bare.normalize.empty()},
                                    {"--labels", !bare.labels.empty()},
                                    {"--classes", bare.classes > 0}})
    if (given) fail_usage(flag, " is for files of weights alone; a run and a checkpoint know it themselves");
  if (request.pack_cache) return load_frozen_model(request.path, request.overrides, true);
  return load_model(request.path, request.checkpoint, request.overrides);
}

LoadedModel load_bare_weights(const ModelRequest& request) {
  if (!request.checkpoint.empty())
    fail_usage(printable(request.path), " is not a run folder, so it has no ", request.checkpoint,
               " checkpoint to choose");
  LoadedModel loaded;
  loaded.path = request.path;
  NamedTensors tensors = read_weights(request.path);
  if (tensors.empty()) fail(printable(request.path), " has no tensors; use another copy");
  const std::vector<Section> sections = model_sections();
  const std::string& file = request.bare.config;
  std::optional<DerivedModel> derived;
  if (file.empty()) derived = derive_model(tensors, request.path);
  if (derived) check_derived(*derived, request);
  const Config config = derived ? derived_config(*derived, request) : given_config(file, sections);
  loaded.config = resolve(overridden(config, request.overrides, sections), sections);
  loaded.eval_transforms =
      TransformPipeline(read_section<TransformOptions>(loaded.config, "transforms").eval, "transforms.eval");
  const int64_t classes = bare_classes(request, tensors);
  const PixelStatistics pixels =
      bare_statistics(request, tensors, loaded.eval_transforms, derived ? &*derived : nullptr);
  loaded.data =
      derived && !request.needs_data ? info_without_data(classes, derived->channels) : info_of_data(loaded.config);
  if (std::ssize(loaded.data.classes) != classes)
    fail(printable(request.path), " has ", classes, " classes, the dataset ", printable(loaded.data.name),
         " of [data] ", loaded.data.classes.size(), "; name the dataset that it was trained for");
  name_classes(loaded.data, request.bare.labels, request.path);
  loaded.task_loss = task_loss_named("auto", loaded.data);
  loaded.shape = shape_after(loaded.eval_transforms, loaded.data);
  loaded.model = make_model(loaded.config, loaded.shape, pixels);
  std::erase_if(tensors, [](const auto& entry) { return is_pixel_statistics(entry.first); });
  LoadOptions options;
  options.strict = true;
  options.adapt = weight_adapter(*loaded.model);
  try {
    load_weights(*loaded.model, add_missing_buffers(std::move(tensors), *loaded.model), options);
  } catch (const Error& error) {
    fail(printable(request.path), " does not fit ",
         derived ? cat("the ", derived->settings.value("name", ""), " that its tensors tell")
                 : cat("[model] of ", printable(file)),
         ": ", error.what());
  }
  loaded.expert_weights = expert_weights(*loaded.model);
  return loaded;
}

}  // namespace sparsight
