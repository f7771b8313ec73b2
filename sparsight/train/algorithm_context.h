// What a training algorithm is built from, and helpers that most of them need.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/dist/group.h"
#include "sparsight/models/image_model.h"
#include "sparsight/optim/optimizer.h"

namespace sparsight {

struct AlgorithmContext {
  Json config;  // resolved
  RunOptions run;
  TrainOptions train;
  DataInfo data;
  at::Tensor super_classes;           // [K,E]: guidance of the routers (eval/guidance.h); undefined without
  std::shared_ptr<ImageModel> model;  // the one that is trained, evaluated and saved
  dist::GroupPtr group = std::make_shared<dist::Group>();  // the processes that train it
  at::Tensor class_weights = {};                           // [K] fp64 (class_weights.h); undefined: none
};

// The parameters to optimise, as set in [train] freeze, no_decay and param_groups. "norm" in no_decay is also for layer
// norms of other names. Sets requires_grad to false on frozen parameters. Raises UsageError if a name matches no
// parameter or if every parameter is frozen.
std::vector<OptimizedParameter> trainable_parameters(const torch::nn::Module& model, const TrainOptions& options);

// The optimiser set in [optimizer], for some or all of trainable_parameters() or an algorithm's own parameters.
std::shared_ptr<Optimizer> make_optimizer(const AlgorithmContext& context, std::vector<OptimizedParameter> parameters);

// The base learning rate of [optimizer], for UpdateContext::lr_factor to scale.
double base_learning_rate(const AlgorithmContext& context);

// A copy of the model with the same weights: a teacher, the fast weights of meta-learning, an earlier stage.
std::shared_ptr<ImageModel> copy_of_model(const AlgorithmContext& context);

}  // namespace sparsight
