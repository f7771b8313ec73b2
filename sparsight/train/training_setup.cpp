#include "sparsight/train/training_setup.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/models/make_model.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/parameter_memory.h"
#include "sparsight/train/guidance.h"
#include "sparsight/train/initial_weights.h"

namespace sparsight {
namespace {

// The shape that the first image has after the evaluation transforms.
ImageShape image_shape(const DataSet& data, const TransformPipeline& transforms) {
  RandomStream unused(0, "shape");
  const at::Tensor image = transforms(data.get(0).image, unused);
  return {image.size(0), image.size(1), image.size(2), static_cast<int64_t>(data.info().classes.size())};
}

bool has_prefix(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

bool has_part(const std::string& name, const std::vector<std::string>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

// The names and how they begin, up to each dot.
std::vector<std::string> beginnings(const std::vector<std::string>& names) {
  std::vector<std::string> all = names;
  for (const std::string& name : names)
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      all.push_back(name.substr(0, dot));
  return all;
}

// Freezes what options.freeze names and lists the rest for the optimiser.
std::vector<OptimizedParameter> optimized_parameters(const torch::nn::Module& model, const TrainOptions& options) {
  std::vector<OptimizedParameter> parameters;
  std::vector<std::string> names;
  for (auto& item : model.named_parameters()) {
    names.push_back(item.key());
    const bool frozen = has_prefix(item.key(), options.freeze);
    item.value().set_requires_grad(!frozen);
    if (!frozen) parameters.push_back({item.key(), item.value(), !has_part(item.key(), options.no_decay)});
  }
  for (const std::string& prefix : options.freeze)
    if (std::none_of(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(prefix); }))
      fail_usage("train.freeze names \"", printable(prefix), "\", but no parameter starts so",
                 did_you_mean(nearest_name(prefix, beginnings(names))));
  if (parameters.empty()) fail_usage("train.freeze leaves no parameter to train");
  return parameters;
}

TrainingLength training_length(const TrainOptions& options, int64_t batches_per_epoch) {
  TrainingLength length;
  length.steps_per_epoch = std::max<int64_t>(1, batches_per_epoch / options.accumulate);
  length.total_steps = (options.epochs * batches_per_epoch + options.accumulate - 1) / options.accumulate;
  if (options.max_steps > 0) length.total_steps = std::min(length.total_steps, options.max_steps);
  return length;
}

std::shared_ptr<ImageModel> new_model(const Json& resolved, const ImageShape& shape) {
  const ParameterBound bound = bound_to_free_memory("model");
  return make_model(resolved, shape);
}

}  // namespace

TrainingSetup make_training_setup(const Json& resolved, bool fresh) {
  TrainingSetup setup;
  setup.config = resolved;
  setup.run = read_section<RunOptions>(resolved, "run");
  setup.train = read_section<TrainOptions>(resolved, "train");
  apply_threads(setup.run);
  const uint64_t seed = static_cast<uint64_t>(setup.run.seed);

  const DataSplits splits = make_component(data_sets(), resolved, "data", DataContext{seed});
  const TransformOptions transforms = read_section<TransformOptions>(resolved, "transforms");
  const LoaderOptions loader = read_section<LoaderOptions>(resolved, "loader");
  const TransformPipeline train_transforms(transforms.train, "transforms.train");
  const TransformPipeline eval_transforms(transforms.eval, "transforms.eval");
  setup.data = splits.train->info();
  setup.shape = image_shape(*splits.train, eval_transforms);
  setup.train_loader = std::make_unique<Loader>(splits.train, train_transforms,
                                                BatchTransform(transforms, setup.shape.classes), loader, seed);
  setup.validation_loader = evaluation_loader(splits.validation, eval_transforms, loader);
  setup.test_loader = evaluation_loader(splits.test, eval_transforms, loader);

  setup.super_classes = guidance(resolved, setup.data);
  setup.model = new_model(resolved, setup.shape);
  if (fresh) {
    initialize(*setup.model, seed);
    if (!setup.train.init_from.empty())
      load_initial_weights(*setup.model, setup.train.init_from, {setup.train.upcycle_noise, seed});
  }
  setup.optimizer =
      make_component(optimizers(), resolved, "optimizer", optimized_parameters(*setup.model, setup.train));
  setup.base_lr = resolved.at("optimizer").at("lr").get<double>();
  setup.length = training_length(setup.train, setup.train_loader->batches_per_epoch());
  setup.schedule = make_component(schedules(), resolved, "schedule", setup.length);
  return setup;
}

}  // namespace sparsight
