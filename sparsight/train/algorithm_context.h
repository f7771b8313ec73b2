// What a training algorithm is made from, and what most of them begin with.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "sparsight/catalogue/run_options.h"
#include "sparsight/catalogue/train_options.h"
#include "sparsight/data/data_set.h"
#include "sparsight/models/image_model.h"
#include "sparsight/optim/optimizer.h"

namespace sparsight {

struct AlgorithmContext {
  Json config;  // resolved
  RunOptions run;
  TrainOptions train;
  DataInfo data;
  at::Tensor super_classes;           // [K,E]: what routers are guided by (eval/guidance.h); undefined without guidance
  std::shared_ptr<ImageModel> model;  // the one that is trained, evaluated and saved
};

// The model's parameters as [train] freeze, no_decay and param_groups ask: those to freeze need no gradient from now
// on, the others are listed for an optimiser. Raises UsageError where a name fits no parameter, or none is left.
std::vector<OptimizedParameter> trainable_parameters(const torch::nn::Module& model, const TrainOptions& options);

// An optimiser as [optimizer] asks, for some or all of trainable_parameters() or parameters of an algorithm's own.
std::shared_ptr<Optimizer> make_optimizer(const AlgorithmContext& context, std::vector<OptimizedParameter> parameters);

// The base learning rate of [optimizer], for UpdateContext::lr_factor to scale.
double base_learning_rate(const AlgorithmContext& context);

// Another model with the same weights: a teacher, a fast copy of meta-learning, an earlier stage.
std::shared_ptr<ImageModel> copy_of_model(const AlgorithmContext& context);

}  // namespace sparsight
