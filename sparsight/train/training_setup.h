// Everything that a training run is made of, built from its resolved configuration.
#pragma once

#include <memory>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/data/loader.h"
#include "sparsight/models/image_model.h"
#include "sparsight/optim/optimizer.h"
#include "sparsight/optim/schedule.h"

namespace sparsight {

struct TrainingSetup {
  Json config;  // resolved
  RunOptions run;
  TrainOptions train;
  DataInfo data;
  at::Tensor super_classes;  // [K,E]: what routers are guided by (guidance.h); undefined without guidance
  ImageShape shape;
  std::unique_ptr<Loader> train_loader, validation_loader, test_loader;  // without validation, the second is null
  std::shared_ptr<ImageModel> model;
  std::shared_ptr<Optimizer> optimizer;
  TrainingLength length;
  Schedule schedule;  // step -> factor
  double base_lr = 0;
};

// `fresh`: the weights are initialised (and train.init_from is read); a resumed run replaces them anyway. Sets the
// number of compute threads as a side effect. Raises UsageError for settings that do not fit each other.
TrainingSetup make_training_setup(const Json& resolved, bool fresh);

}  // namespace sparsight
