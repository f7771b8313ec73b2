#include "sparsight/infer/loaded_model.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/setting_schedule.h"
#include "sparsight/nn/parameter_memory.h"

namespace sparsight {
namespace {

// For sets whose images vary in size; their transforms bring any image to one.
constexpr int64_t kProbeSide = 256;

std::string checkpoint_path(const std::string& path, const std::string& which) {
  if (!std::filesystem::is_directory(path)) {
    if (path.ends_with(".toml") && std::filesystem::exists(path))
      fail_usage(path,
                 " is a configuration, no trained model; name the run folder that train made of it, or a checkpoint");
    if (!which.empty()) fail_usage(path, " is no run folder, so there is no ", which, " checkpoint to choose in it");
    return path;
  }
  const RunFolder run = RunFolder::open(path);
  for (const std::string& name : which.empty() ? std::vector<std::string>{"best", "last"} : std::vector{which})
    if (run.has_checkpoint(name)) return run.checkpoint(name);
  fail("the run ", path, " has no ", which.empty() ? "" : which + " ", "checkpoint",
       run.is_done() ? "; it is finished, so the file was removed: train it again with --overwrite"
                     : " yet; train it longer");
}

// A configuration that was in no file: errors name no line.
Config config_of(const Json& tree) {
  Config config = Config::from_text("", "");
  for (const auto& [section, table] : tree.items()) {
    if (!table.is_object()) fail_usage("[", printable(section), "] must be a table, got ", shown(table));
    for (const auto& [key, value] : table.items()) config.set(section, key, value, "its configuration");
  }
  return config;
}

// The sections of the checkpoint's configuration that its model is used with, with the defaults of settings that are
// newer than it. How it was trained (by an optimiser that this program may not know) is of no interest.
Json resolved_config(const Checkpoint& checkpoint) {
  Json used = Json::object();
  for (const Section& section : model_sections())
    if (checkpoint.config.contains(section.name)) used[section.name] = checkpoint.config.at(section.name);
  return resolve(config_of(used), model_sections());
}

// What the weights were made for. A new value would need other weights, or leave these without their meaning.
void check_same_model(const Json& trained, const Json& changes) {
  for (const auto& [section, key] :
       {std::pair{"model", "name"}, {"router", "name"}, {"experts", "name"}, {"moe", "experts"}}) {
    if (!changes.contains(section) || !changes[section].contains(key) || !trained.contains(section)) continue;
    const Json &was = trained[section][key], &now = changes[section][key];
    if (now != was)
      fail_usage("the run has ", section, ".", key, " = ", shown(was), ", and its weights do not fit ", section, ".",
                 key, " = ", shown(now), "; train again with --set ", section, ".", key, "=",
                 now.is_string() ? printable(now.get<std::string>()) : shown(now));
  }
}

// `resolved` with `overrides`; trained: the whole configuration of the checkpoint.
Json with_overrides(const Json& resolved, const Json& trained, const std::vector<std::string>& overrides) {
  Config changes;
  for (const std::string& assignment : overrides) changes.set(assignment);
  check_same_model(resolved, changes.tree());
  for (const auto& [section, table] : changes.tree().items())
    if (!resolved.contains(section) && trained.contains(section))
      fail_usage("[", section, "] says how a model is trained, and this one is trained already; leave out --set ",
                 section, ".", table.begin().key());
  return resolve(overridden(config_of(resolved), overrides, model_sections()), model_sections());
}

// What the model was trained on. Earlier versions did not write it down: then of an image of the set's size after the
// transforms.
ImageShape trained_shape(const Checkpoint& checkpoint, const LoadedModel& loaded) {
  if (!checkpoint.state.contains("image")) return shape_after(loaded.eval_transforms, loaded.data);
  const auto image = checkpoint.state.at("image").get<std::array<int64_t, 3>>();
  for (const int64_t side : image)
    if (side < 1 || side > 1 << 20) fail("its images are of ", image[0], "x", image[1], "x", image[2], " numbers");
  return {image[0], image[1], image[2], static_cast<int64_t>(loaded.data.classes.size())};
}

struct UsedWeights {
  NamedTensors tensors;
  std::string kind;  // LoadedModel::weights
};

// Whether the file, which does not say so itself, is a best checkpoint, written while the model had its averaged
// weights. Earlier versions wrote plain ones at the end of a training that never evaluated, and left best_step 0.
bool is_averaged_best(const Checkpoint& checkpoint) {
  const Json progress = checkpoint.state.value("progress", Json::object());
  const auto best_step = progress.value("best_step", int64_t{0});
  return checkpoint.training.empty() && best_step > 0 && best_step == progress.value("step", int64_t{0});
}

// The average of the weights is what training evaluates; the best checkpoint holds nothing else, the last one both.
// config: the checkpoint's own.
UsedWeights weights_for_use(const Checkpoint& checkpoint, const Json& config) {
  const NamedTensors average = tensors_under(kAverageTensors, checkpoint.training);
  if (!average.empty()) return {average, checkpoint.state.value("average", "ema")};
  const bool averaged = read_section<TrainOptions>(config, "train").ema_decay > 0 && is_averaged_best(checkpoint);
  return {checkpoint.weights, checkpoint.state.value("weights", averaged ? "ema" : "model")};
}

// The model that the configuration describes. One somewhat larger than the weights is made, so that loading can name
// the parameters that do not fit.
std::shared_ptr<ImageModel> new_model(const LoadedModel& loaded, const NamedTensors& weights,
                                      const PixelStatistics& pixels) {
  constexpr int64_t kSlack = 4, kSmall = 64 << 20;
  int64_t values = 0;
  for (const auto& [name, tensor] : weights) values += tensor.numel();
  const ParameterBound bound(kSlack * values * static_cast<int64_t>(sizeof(float)) + kSmall,
                             "its configuration describes a far larger model than it has weights for");
  return make_model(loaded.config, loaded.shape, pixels);
}

TransformPipeline eval_pipeline(const Json& config) {
  return TransformPipeline(read_section<TransformOptions>(config, "transforms").eval, "transforms.eval");
}

LoadedModel model_of(const Checkpoint& checkpoint, const std::string& path, const std::vector<std::string>& overrides) {
  LoadedModel loaded;
  loaded.path = path;
  loaded.step = checkpoint.state.at("step").get<int64_t>();
  loaded.config = resolved_config(checkpoint);
  const UsedWeights weights = weights_for_use(checkpoint, loaded.config);
  loaded.weights = weights.kind;
  const PixelStatistics trained = eval_pipeline(loaded.config).statistics();
  if (!overrides.empty()) loaded.config = with_overrides(loaded.config, checkpoint.config, overrides);
  loaded.data = data_info_from(checkpoint.state.at("data"));
  loaded.eval_transforms = eval_pipeline(loaded.config);
  const PixelStatistics& asked = loaded.eval_transforms.statistics();
  loaded.shape = trained_shape(checkpoint, loaded);
  loaded.model = new_model(loaded, weights.tensors, asked.empty() ? trained : asked);
  LoadOptions options;
  options.strict = true;
  load_weights(*loaded.model, with_pixel_statistics(weights.tensors, *loaded.model), options);
  if (!asked.empty() && !(asked == trained)) loaded.model->set_pixel_statistics(asked);
  std::vector<SettingSchedule> schedules = read_setting_schedules(loaded.config);
  std::erase_if(schedules, [&](const SettingSchedule& schedule) {  // an override of a setting outlives its schedule
    return std::ranges::any_of(overrides,
                               [&](const std::string& set) { return set.starts_with(schedule.setting + "="); });
  });
  apply_setting_schedules(*loaded.model, schedules, checkpoint.state.value("training_share", 1.0));
  return loaded;
}

}  // namespace

ImageShape shape_after(const TransformPipeline& transforms, const DataInfo& data) {
  const at::Tensor blank = at::zeros(
      {data.channels, data.height > 0 ? data.height : kProbeSide, data.width > 0 ? data.width : kProbeSide}, at::kByte);
  RandomStream unused(0, "shape");
  const at::Tensor image = transforms(blank, unused);
  return {image.size(0), image.size(1), image.size(2), static_cast<int64_t>(data.classes.size())};
}

at::Tensor model_image(const LoadedModel& loaded, const at::Tensor& image) {
  RandomStream unused(0, "predict");  // evaluation transforms draw nothing
  at::Tensor input = loaded.eval_transforms(image, unused);
  const ImageShape& shape = loaded.shape;
  if (input.sizes() != at::IntArrayRef({shape.channels, shape.height, shape.width}))
    fail("the image of ", image.size(2), "x", image.size(1), " pixels and ", image.size(0),
         " channels does not become the ", shape.width, "x", shape.height, " pixels and ", shape.channels,
         " channels that the model takes; resize it, or train with a resize in [transforms] eval");
  return input;
}

void pack_experts(LoadedModel& loaded, const std::string& type) {
  if (pack_experts(*loaded.model, parse_weight_type(type)) == 0)
    fail("the model ", loaded.path, " has no experts that can be packed as ", type,
         "; those of the kind mlp with one hidden layer can");
}

LoadedModel load_model(const std::string& path, const std::string& which, const std::vector<std::string>& overrides) {
  const std::string file = checkpoint_path(path, which);
  const Checkpoint checkpoint = read_checkpoint(file);
  try {
    return model_of(checkpoint, file, overrides);
  } catch (const Error& error) {  // a wrong configuration in a checkpoint is no wrong usage, but a wrong override is
    if (!overrides.empty() && dynamic_cast<const UsageError*>(&error)) throw;
    const std::string changed = overrides.empty() ? "" : " with --set " + printable(join(overrides, " --set "));
    fail("cannot use the checkpoint ", file, changed, ": ", error.what());
  } catch (const Json::exception&) {
    fail("cannot use the checkpoint ", file, ": its state is damaged");
  }
}

}  // namespace sparsight
