// Everything that a training run needs, built from its resolved configuration.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/data/training_loaders.h"
#include "sparsight/models/image_model.h"
#include "sparsight/moe/setting_schedule.h"
#include "sparsight/optim/schedule.h"
#include "sparsight/train/algorithm.h"

namespace sparsight {

struct TrainingSetup {
  Json config;  // resolved, with the [transforms] fitted to the data (data/transforms/fit_to_data.h)
  RunOptions run;
  TrainOptions train;
  DataInfo data;
  ImageShape shape;
  std::vector<EndlessLoader> train_loaders;                // one, or one for each domain
  std::unique_ptr<Loader> validation_loader, test_loader;  // validation_loader is null without a validation split
  std::unique_ptr<Loader> monitor_loader;                  // null: none
  std::string missing_split;                               // DataSplits::missing
  dist::GroupPtr group;                                    // the processes that train it
  std::shared_ptr<ImageModel> model;
  std::shared_ptr<Algorithm> algorithm;  // how the model is trained
  TrainingLength length;
  Schedule schedule;  // step -> factor
  std::vector<SettingSchedule> setting_schedules;
};

// `fresh`: the weights are initialised (and train.init_from is read); a resumed run replaces them anyway. Sets the
// number of compute threads as a side effect. Raises UsageError for incompatible settings.
// recorded: [K] the division into super-classes that a resumed run began with, empty if it had none; null: it follows
// from the configuration.
TrainingSetup make_training_setup(const Json& resolved, bool fresh,
                                  const std::optional<std::vector<int64_t>>& recorded = std::nullopt,
                                  const dist::GroupPtr& group = std::make_shared<dist::Group>());
// The same with these images instead of those that [data] chooses.
TrainingSetup make_training_setup(const Json& resolved, bool fresh, const DataSplits& splits,
                                  const std::optional<std::vector<int64_t>>& recorded = std::nullopt,
                                  const dist::GroupPtr& group = std::make_shared<dist::Group>());

}  // namespace sparsight
