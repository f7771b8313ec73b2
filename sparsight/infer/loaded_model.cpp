#include "sparsight/infer/loaded_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "sparsight/catalogue/model_sections.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/data/one_compute_thread.h"
#include "sparsight/data/transforms/resize.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/infer/frozen_model.h"
#include "sparsight/io/checkpoint.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/io/shard_index.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/moe/moe_layer.h"
#include "sparsight/moe/moe_spec.h"
#include "sparsight/moe/setting_schedule.h"
#include "sparsight/nn/parameter_memory.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight {
namespace {

// For datasets whose images vary in size; their transforms resize any image to a fixed size.
constexpr int64_t kProbeSide = 256;
constexpr uintmax_t kSmallFile = 16 << 20;  // read and packed in milliseconds

std::string checkpoint_path(const std::string& path, const std::string& which) {
  if (!std::filesystem::is_directory(path) || is_sharded(path)) {
    if (path.ends_with(".toml") && std::filesystem::exists(path))
      fail_usage(path, " is a configuration, not a trained model; name its run folder or a checkpoint");
    if (!which.empty()) fail_usage(path, " is not a run folder, so it has no ", which, " checkpoint to choose");
    return path;
  }
  const RunFolder run = RunFolder::open(path);
  for (const std::string& name : which.empty() ? std::vector<std::string>{"best", "last"} : std::vector{which})
    if (run.has_checkpoint(name)) return run.checkpoint(name);
  fail("the run ", path, " has no ", which.empty() ? "" : which + " ", "checkpoint",
       run.is_done() ? "; it is finished, so the file was removed: train it again with --overwrite"
                     : " yet; train longer");
}

constexpr const char* kItsConfiguration = "its configuration";

// Settings that are newer than the checkpoint get their defaults. How it was trained (perhaps with an optimiser unknown
// here) does not matter.
Json resolved_config(const Checkpoint& checkpoint) {
  check_trained_names(checkpoint.config, model_sections());
  return resolved_model(checkpoint.config, kItsConfiguration);
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
      fail_usage("[", section, "] configures training, but this model is already trained; leave out --set ", section,
                 ".", table.begin().key());
  return resolve(overridden(Config::from_tables(resolved, kItsConfiguration), overrides, model_sections()),
                 model_sections());
}

// The image shape that the model was trained on. Earlier versions did not record it: then the shape of an image of the
// dataset's size after the transforms.
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

// Whether the file, which does not record it, is a best checkpoint, written while the model had its averaged weights.
// Earlier versions wrote plain ones at the end of a training that never evaluated, and left best_step 0.
bool is_averaged_best(const Checkpoint& checkpoint) {
  const Json progress = checkpoint.state.value("progress", Json::object());
  const auto best_step = progress.value("best_step", int64_t{0});
  return checkpoint.training.empty() && best_step > 0 && best_step == progress.value("step", int64_t{0});
}

// Training evaluates the averaged weights; the best checkpoint holds only these, the last one both. config: the
// checkpoint's own.
UsedWeights find_used_weights(const Checkpoint& checkpoint, const Json& config) {
  if (!tensors_under(kAverageTensors, checkpoint.training).empty())
    return {weights_for_use(checkpoint), checkpoint.state.value("average", "ema")};
  const bool averaged = read_section<TrainOptions>(config, "train").ema_decay > 0 && is_averaged_best(checkpoint);
  return {checkpoint.weights, checkpoint.state.value("weights", averaged ? "ema" : "model")};
}

// The model that the configuration describes. A model somewhat larger than the weights is built, so that loading can
// name the parameters that do not fit.
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

at::Tensor transformed(const LoadedModel& loaded, const at::Tensor& image) {
  ViewRandom unused(RandomStream(0, "predict"));  // evaluation transforms draw nothing
  return loaded.eval_transforms(image, unused);
}

// The shorter side as long as the model needs, antialiased, and the centre of the other.
at::Tensor resized_and_cropped(const at::Tensor& image, const ImageShape& shape) {
  const double scale = std::max(static_cast<double>(shape.height) / static_cast<double>(image.size(1)),
                                static_cast<double>(shape.width) / static_cast<double>(image.size(2)));
  const auto scaled = [&](int64_t size, int64_t minimum) {
    return std::max<int64_t>(minimum, std::llround(static_cast<double>(size) * scale));
  };
  const int64_t height = scaled(image.size(1), shape.height), width = scaled(image.size(2), shape.width);
  return resize_image(image, height, width, "bilinear")
      .slice(1, (height - shape.height) / 2, (height - shape.height) / 2 + shape.height)
      .slice(2, (width - shape.width) / 2, (width - shape.width) / 2 + shape.width)
      .contiguous();
}

// `input`, made of `image`, has the model's shape.
at::Tensor checked(const LoadedModel& loaded, const at::Tensor& image, const at::Tensor& input) {
  const ImageShape& shape = loaded.shape;
  if (input.sizes() != at::IntArrayRef({shape.channels, shape.height, shape.width}))
    fail("the image of ", image.size(2), "x", image.size(1), " pixels and ", image.size(0),
         " channels is not transformed to the ", shape.width, "x", shape.height, " pixels and ", shape.channels,
         " channels that the model takes; resize it, or train with a resize in [transforms] eval");
  return input;
}

}  // namespace

// Frees the tensors of `checkpoint` before weights are packed.
LoadedModel load_checkpoint(Checkpoint checkpoint, const std::string& path, const std::vector<std::string>& overrides) {
  LoadedModel loaded = described_model(checkpoint, path, overrides);
  const Json own = overrides.empty() ? loaded.config : resolved_config(checkpoint);
  UsedWeights weights = find_used_weights(checkpoint, own);
  loaded.weights = weights.kind;
  const PixelStatistics trained = eval_pipeline(own).statistics(), requested = loaded.eval_transforms.statistics();
  loaded.model = new_model(loaded, weights.tensors, requested.empty() ? trained : requested);
  LoadOptions options;
  options.strict = true;
  load_weights(*loaded.model, add_missing_buffers(weights.tensors, *loaded.model), options);
  weights.tensors.clear(), checkpoint.weights.clear(), checkpoint.training.clear();
  if (!requested.empty() && !(requested == trained)) loaded.model->set_pixel_statistics(requested);
  std::vector<SettingSchedule> schedules = read_setting_schedules(loaded.config);
  std::erase_if(schedules, [&](const SettingSchedule& schedule) {  // an override of a setting replaces its schedule
    return std::ranges::any_of(overrides,
                               [&](const std::string& set) { return set.starts_with(schedule.setting + "="); });
  });
  apply_setting_schedules(*loaded.model, schedules, checkpoint.state.value("training_share", 1.0));
  loaded.expert_weights = expert_weights(*loaded.model);
  return loaded;
}

LoadedModel described_model(const Checkpoint& checkpoint, const std::string& path,
                            const std::vector<std::string>& overrides) {
  LoadedModel loaded;
  loaded.path = path;
  loaded.step = checkpoint.state.at("step").get<int64_t>();
  loaded.config = resolved_config(checkpoint);
  loaded.algorithm = text(member(checkpoint.config, "algorithm"), "name");
  if (!overrides.empty()) loaded.config = with_overrides(loaded.config, checkpoint.config, overrides);
  loaded.data = data_info_from(checkpoint.state.at("data"));
  loaded.task_loss = task_loss_named(read_section<TrainOptions>(loaded.config, "train").task_loss, loaded.data);
  loaded.super_class_of = guiding_super_classes(loaded.config, loaded.data);
  loaded.eval_transforms = eval_pipeline(loaded.config);
  loaded.shape = trained_shape(checkpoint, loaded);
  return loaded;
}

void check_classes(const LoadedModel& loaded, const DataInfo& dataset) {
  if (dataset.classes.size() != loaded.data.classes.size())
    fail("the dataset has ", dataset.classes.size(), " classes, but the model was trained on ",
         loaded.data.classes.size());
}

ImageShape shape_after(const TransformPipeline& transforms, const DataInfo& data) {
  const at::Tensor blank = at::zeros(
      {data.channels, data.height > 0 ? data.height : kProbeSide, data.width > 0 ? data.width : kProbeSide}, at::kByte);
  ViewRandom unused(RandomStream(0, "shape"));
  const at::Tensor image = transforms(blank, unused);
  return {image.size(0), image.size(1), image.size(2), static_cast<int64_t>(data.classes.size())};
}

Json routing_source(const LoadedModel& loaded) {
  return {{"checkpoint", printable(loaded.path)},
          {"step", loaded.step},
          {"weights", loaded.weights},
          {"classes", printable_names(loaded.data.classes)}};
}

at::Tensor model_image(const LoadedModel& loaded, const at::Tensor& image) {
  const ImageShape& shape = loaded.shape;
  const auto log_resize = [&] {
    if (!loaded.resize_logged->exchange(true))
      log_info("images of another size are resized by the shorter side and cropped to the model's ", shape.width, "x",
               shape.height, " pixels");
  };
  if (loaded.program && loaded.program->program().info.preprocessing) {
    const at::Tensor bytes = image.contiguous();
    const int64_t channels = bytes.size(0), height = bytes.size(1), width = bytes.size(2);
    at::Tensor input = at::empty({shape.channels, shape.height, shape.width});
    if (loaded.program->program().info.preprocessing->run(
            {bytes.const_data_ptr<uint8_t>(), channels, height, width, height * width, width}, input.data_ptr<float>()))
      log_resize();
    return input;
  }
  const auto fits = [&](const at::Tensor& input) {
    return input.sizes() == at::IntArrayRef({shape.channels, shape.height, shape.width});
  };
  const bool own_size = image.size(1) == shape.height && image.size(2) == shape.width;
  at::Tensor input;
  try {
    input = transformed(loaded, image);
    if (own_size || fits(input)) return checked(loaded, image, input);
  } catch (const Error&) {  // a crop of more pixels than there are
    if (own_size) throw;
  }
  input = transformed(loaded, resized_and_cropped(image, shape));
  if (fits(input)) log_resize();
  return checked(loaded, image, input);
}

ModelOutput LoadedModel::forward(const ModelInput& input) const {
  SPARSIGHT_CHECK(model || (program && ProgramModel::takes(input)));
  return program ? program->forward(input) : model->forward(input);
}

engine::Program make_program(const LoadedModel& loaded, const engine::WeightForm& form) {
  const ImageShape& shape = loaded.shape;
  engine::Program program = loaded.model->compile(form);
  program.info = {.preprocessing = loaded.eval_transforms.compile(shape.channels, shape.height, shape.width),
                  .classes = loaded.data.classes,
                  .super_classes = loaded.data.super_classes,
                  .super_class_of = loaded.super_class_of,
                  .sigmoid = loaded.task_loss == TaskLoss::sigmoid_cross_entropy};
  return program;
}

std::shared_ptr<const ProgramModel> compile_program(const LoadedModel& loaded, const std::string& weights,
                                                    int64_t images) {
  constexpr int64_t kImages = 16;  // one saves about a tenth of what packing the experts takes
  engine::WeightForm form;
  if (!weights.empty()) form.type = parse_weight_type(weights);
  form.packs_experts = images >= kImages || form.type != WeightType::fp32;
  try {
    return std::make_shared<const ProgramModel>(make_program(loaded, form), loaded.shape);
  } catch (const Error& error) {
    if (weights.empty()) return nullptr;
    fail("the weights of ", loaded.path, " cannot be used as ", weights, ": ", error.what());
  }
}

void compile(LoadedModel& loaded, int64_t images, const std::string& weights) {
  if (!loaded.model) {
    if (!weights.empty() && weights != loaded.weight_type)
      fail_usage(printable(loaded.path), " has its weights in ", loaded.weight_type, ", not ", weights,
                 "; export the run with --weights ", weights);
    return;
  }
  loaded.mixes_images = false;
  for_each_router_owner(*loaded.model, [&](HasRouter& owner) {
    loaded.mixes_images = loaded.mixes_images || owner.own_router()->mixes_images(ForwardMode::evaluation());
  });
  loaded.multiply_adds = total(loaded.model->cost({})).multiply_adds;
  loaded.program = compile_program(loaded, weights, images);
  if (!loaded.program) return;
  if (!weights.empty()) loaded.weight_type = weights;
  loaded.model.reset();
}

LoadedModel load_model(const std::string& path, const std::string& which, const std::vector<std::string>& overrides) {
  if (is_frozen_model(path)) return load_frozen_model(path, overrides);
  const std::string file = checkpoint_path(path, which);
  std::error_code missing;  // read_checkpoint() says so
  const OneComputeThread one_thread(std::filesystem::file_size(file, missing) < kSmallFile);
  Checkpoint checkpoint = read_checkpoint(file, CheckpointParts::kInference);
  try {
    return load_checkpoint(std::move(checkpoint), file, overrides);
  } catch (const Error& error) {  // a bad configuration in a checkpoint is not a usage error, but a bad override is
    if (!overrides.empty() && dynamic_cast<const UsageError*>(&error)) throw;
    const std::string changed = overrides.empty() ? "" : " with --set " + printable(join(overrides, " --set "));
    fail("cannot use the checkpoint ", file, changed, ": ", error.what());
  } catch (const Json::exception&) {
    fail("cannot use the checkpoint ", file, ": its state is damaged");
  }
}

}  // namespace sparsight
