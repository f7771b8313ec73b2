#include "sparsight/train/training_setup.h"

#include <algorithm>
#include <utility>

#include "sparsight/catalogue/dist_options.h"
#include "sparsight/core/config.h"
#include "sparsight/core/log.h"
#include "sparsight/data/check_images.h"
#include "sparsight/data/register_data.h"
#include "sparsight/data/transforms/fit_to_data.h"
#include "sparsight/data/transforms/transform_options.h"
#include "sparsight/dist/exact_parts.h"
#include "sparsight/eval/guidance.h"
#include "sparsight/eval/superclass_division.h"
#include "sparsight/eval/task_loss.h"
#include "sparsight/io/weights.h"
#include "sparsight/models/make_model.h"
#include "sparsight/models/spread_experts.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/parameter_memory.h"
#include "sparsight/train/class_weights.h"
#include "sparsight/train/dense_agreement.h"
#include "sparsight/train/initial_weights.h"

namespace sparsight {
namespace {

// The shape of the first image after the evaluation transforms.
ImageShape image_shape(const DataSet& data, const TransformPipeline& transforms) {
  ViewRandom unused(RandomStream(0, "shape"));
  const at::Tensor image = transforms(data.get(0).image, unused);
  return {image.size(0), image.size(1), image.size(2), static_cast<int64_t>(data.info().classes.size())};
}

void fit_transforms(Json& config, const DataInfo& info) {
  for (const char* const pipeline : {"train", "eval"}) {
    Json& steps = config["transforms"][pipeline];
    steps = fit_to_data(steps, info);
  }
}

// Set by the longest loader: an epoch covers every image, those of smaller domains more than once.
int64_t batches_per_epoch(const std::vector<EndlessLoader>& loaders) {
  int64_t most = 0;
  for (const EndlessLoader& loader : loaders) most = std::max(most, loader.batches_per_epoch());
  return most;
}

TrainingLength training_length(const TrainOptions& options, int64_t batches_per_epoch, int64_t ranks) {
  const int64_t per_step = options.accumulate * ranks;
  TrainingLength length;
  length.steps_per_epoch = std::max<int64_t>(1, batches_per_epoch / per_step);
  length.total_steps = (options.epochs * batches_per_epoch + per_step - 1) / per_step;
  if (options.max_steps > 0) length.total_steps = std::min(length.total_steps, options.max_steps);
  return length;
}

std::shared_ptr<ImageModel> new_model(const Json& resolved, const ImageShape& shape,
                                      const dist::ExpertRanks& ranks = {}) {
  const ParameterBound bound = bound_to_free_memory("model");
  return make_model(resolved, shape, pixel_statistics(resolved), ranks);
}

// Evenly spaced images of the training set, as evaluation sees them: [B,C,H,W].
at::Tensor some_images(const DataSet& data, const TransformPipeline& transforms, int64_t count) {
  ViewRandom unused(RandomStream(0, "some images"));
  count = std::min(count, data.size());
  std::vector<at::Tensor> images;
  for (int64_t i = 0; i < count; ++i) images.push_back(transforms(data.get(i * data.size() / count).image, unused));
  return at::stack(images);
}

// Reads train.init_from into the new model. If that upcycles a dense model, [moe] gates = "auto" becomes "sum_to_one",
// with which the model computes what the dense one does, also in the configuration that the run keeps.
void read_initial_weights(TrainingSetup& setup, const DataSet& data, const TransformPipeline& transforms) {
  const TrainOptions& train = setup.train;
  const UpcycleOptions upcycle{train.upcycle_noise, static_cast<uint64_t>(setup.run.seed), train.upcycle == "random"};
  if (!load_initial_weights(*setup.model, train.init_from, upcycle, train.allow_missing)) return;
  if (Json& gates = setup.config["moe"]["gates"]; gates == "auto") {
    gates = "sum_to_one";
    const auto model = new_model(setup.config, setup.shape);
    LoadOptions options;
    options.strict = true;
    load_weights(*model, named_weights(*setup.model), options);
    setup.model = model;
  }
  constexpr int64_t kCompared = 64;
  log_info("upcycled and dense model: ",
           to_text(dense_agreement(*setup.model, setup.config, setup.shape, train.init_from,
                                   some_images(data, transforms, kCompared))));
}

dist::ExpertRanks expert_ranks(const Json& resolved, const dist::GroupPtr& group) {
  const DistOptions options = dist_options(resolved);
  dist::ExpertRanks ranks = dist::share_out_experts(group, options.expert_parallel);
  if (options.exact) ranks.parts = std::make_shared<dist::ExactParts>(ranks.parts);
  return ranks;
}

// The model for its training. Weights that train.init_from changes to fit the model, or makes of a dense model's, are
// made for all experts; of these a rank then takes its own.
void make_training_model(TrainingSetup& setup, const dist::ExpertRanks& ranks, bool fresh, const DataSet& data,
                         const TransformPipeline& transforms) {
  const bool reads = fresh && !setup.train.init_from.empty(), spread = ranks.parts->size() > 1;
  const auto seed = static_cast<uint64_t>(setup.run.seed);
  setup.model = new_model(setup.config, setup.shape, reads ? dist::ExpertRanks() : ranks);
  if (!fresh) return;
  initialize(*setup.model, seed);
  if (const int64_t count = setup.model->images_to_fit(); count > 0 && !reads)
    setup.model->fit(some_images(data, transforms, count));
  if (reads) read_initial_weights(setup, data, transforms);
  if (!spread) return;
  if (!reads) return initialize_spread_experts(*setup.model, seed);
  const auto whole = std::exchange(setup.model, new_model(setup.config, setup.shape, ranks));
  LoadOptions options;
  options.strict = true;
  const SpreadParameters spread_parameters(*setup.model);
  NamedTensors weights = named_weights(*whole);
  for (auto& [name, tensor] : weights) tensor = spread_parameters.own_part(name, tensor);
  load_weights(*setup.model, weights, options);
}

// transforms.val_augment: of domains that train or validate, wherever they are evaluated during training.
void augment_validation(TrainingSetup& setup, const DataSplits& splits, const TransformPipeline& train_transforms) {
  std::vector<bool> domains(setup.data.domains.size(), false);
  for (const DataSetPtr& split : {splits.train, splits.validation})
    for (int64_t i = 0; i < split->size(); ++i) domains.at(static_cast<size_t>(split->domain(i))) = true;
  setup.validation_loader->set_domain_transforms(domains, train_transforms);
  if (setup.monitor_loader) setup.monitor_loader->set_domain_transforms(domains, train_transforms);
}

void check_task_loss(const TrainingSetup& setup) {
  if (task_loss_named(setup.train.task_loss, setup.data) == TaskLoss::cross_entropy && !setup.data.multi_label) return;
  if (setup.algorithm->takes_sigmoid_loss()) return;
  const std::string name = setup.config.at("algorithm").at("name").get<std::string>();
  fail_usage("algorithm.name = \"", name, "\" takes one label per image and its softmax, ",
             setup.data.multi_label ? "but the images of " + setup.data.name + " have several labels"
                                    : "not train.task_loss = \"sigmoid_cross_entropy\"",
             "; use algorithm.name = \"erm\"");
}

void check_class_weights(const TrainingSetup& setup) {
  if (setup.train.class_weights == "none" || setup.algorithm->takes_class_weights()) return;
  fail_usage("algorithm.name = \"", setup.config.at("algorithm").at("name").get<std::string>(),
             "\" has losses of its own, which take no train.class_weights; leave them out, or use algorithm.name = "
             "\"erm\"");
}

void check_ranks(const TrainingSetup& setup) {
  const std::string name = setup.config.at("algorithm").at("name").get<std::string>();
  const AlgorithmFacts facts = algorithms().facts(name);
  if (setup.group->size() == 1 || facts.takes_ranks) return;
  fail_usage("algorithm.name = \"", name, "\" trains in one process only: ", facts.one_process,
             "; train without --processes and torchrun, or use algorithm.name = \"erm\"");
}

}  // namespace

TrainingSetup make_training_setup(const Json& resolved, bool fresh, const std::optional<std::vector<int64_t>>& recorded,
                                  const dist::GroupPtr& group) {
  const RunOptions run = read_section<RunOptions>(resolved, "run");
  apply_threads(run);
  const DataContext context{static_cast<uint64_t>(run.seed)};
  return make_training_setup(resolved, fresh, make_component(data_sets(), resolved, "data", context), recorded, group);
}

TrainingSetup make_training_setup(const Json& resolved, bool fresh, const DataSplits& splits,
                                  const std::optional<std::vector<int64_t>>& recorded, const dist::GroupPtr& group) {
  TrainingSetup setup;
  setup.group = group;
  setup.config = resolved;
  setup.run = read_section<RunOptions>(resolved, "run");
  setup.train = read_section<TrainOptions>(resolved, "train");
  apply_threads(setup.run);
  const uint64_t seed = static_cast<uint64_t>(setup.run.seed);

  fit_transforms(setup.config, splits.train->info());
  const TransformOptions transforms = read_section<TransformOptions>(setup.config, "transforms");
  const LoaderOptions loader = read_section<LoaderOptions>(resolved, "loader");
  if (fresh && loader.on_bad_image == "error") check_images(splits);
  const TransformPipeline train_transforms(transforms.train, "transforms.train");
  const TransformPipeline eval_transforms(transforms.eval, "transforms.eval");
  const DataInfo& own = splits.train->info();
  setup.data = recorded ? with_recorded_superclasses(resolved, own, *recorded) : with_superclasses(resolved, own);
  setup.shape = image_shape(*splits.train, eval_transforms);
  setup.missing_split = splits.missing;
  setup.train_loaders =
      training_loaders(splits.train, train_transforms, BatchTransform(transforms, setup.shape.classes), loader, seed);
  setup.validation_loader = evaluation_loader(splits.validation, eval_transforms, loader);
  setup.test_loader = evaluation_loader(splits.test, eval_transforms, loader);
  if (splits.monitor) setup.monitor_loader = evaluation_loader(splits.monitor, eval_transforms, loader);
  if (transforms.val_augment) augment_validation(setup, splits, train_transforms);

  const at::Tensor super_classes = guidance(resolved, setup.data);
  check_ranks(setup);
  const at::Tensor class_weights = training_class_weights(setup.train, *splits.train);
  make_training_model(setup, expert_ranks(resolved, group), fresh, *splits.train, eval_transforms);
  setup.algorithm = make_component(algorithms(), resolved, "algorithm",
                                   AlgorithmContext{setup.config, setup.run, setup.train, setup.data, super_classes,
                                                    setup.model, group, class_weights});
  check_task_loss(setup);
  check_class_weights(setup);
  setup.length = training_length(setup.train, batches_per_epoch(setup.train_loaders), group->size());
  setup.schedule = make_component(schedules(), resolved, "schedule", setup.length);
  setup.setting_schedules = read_setting_schedules(resolved);
  check_setting_schedules(*setup.model, setup.setting_schedules);
  return setup;
}

}  // namespace sparsight
