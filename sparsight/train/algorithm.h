// The interface of training algorithms: how minibatches update the weights. The Trainer (trainer.h) keeps steps,
// evaluation, checkpoints and the log and knows no loss; losses, optimisers, copies and averages of the model belong
// to the algorithm. A program registers its own algorithm before it reads a configuration:
//
//   algorithms().add<MyOptions>("my_algorithm", "what it does", [](const MyOptions& options, const AlgorithmContext&
//   context) {
//     return std::make_shared<Mine>(options, context);
//   });
#pragma once

#include "sparsight/core/random.h"
#include "sparsight/optim/weight_average.h"
#include "sparsight/train/algorithm_context.h"
#include "sparsight/train/minibatches.h"
#include "sparsight/train/named_means.h"

namespace sparsight {

// The state of the training at an update.
struct UpdateContext {
  StepRandom
      random;  // of the step: take random samples from its named streams, so that no generator state needs saving
  double lr_factor = 1;  // of the learning rate's schedule
  double progress = 0;   // fraction of the training that is done, 0 to 1
  bool logged = false;   // whether `details` of this update will be written
};

struct UpdateResult {
  NamedMeans means;               // averaged over the steps between two lines of metrics.jsonl
  Json details = Json::object();  // further keys of such a line, from the last update before it
  std::string not_finite;         // "loss", "gradient": then weights and state are as they were before the update
};

// Everything an algorithm needs to resume with the same bits, in addition to the model's weights.
struct AlgorithmState {
  NamedTensors tensors;          // those under kAverageTensors are averaged weights: prediction from a last checkpoint
                                 // uses them
  Json values = Json::object();  // numbers keep all their digits; NaN and infinity become null
};

class Algorithm {
 public:
  explicit Algorithm(AlgorithmContext context) : context_(std::move(context)) {}
  virtual ~Algorithm() = default;

  // One step of training.
  virtual UpdateResult update(Minibatches& minibatches, const UpdateContext& context) = 0;

  // What is evaluated during training and at its end: the model as it stands, where this is not overridden. The
  // checkpoints hold the weights of that model, and prediction from them knows no algorithm.
  virtual ModelOutput predict(const ModelInput& input);

  virtual AlgorithmState state() const = 0;
  // Raises Error where `state` is not whole or does not fit. The model's weights are in place already.
  virtual void load_state(const AlgorithmState& state) = 0;

  // The average of the model's weights that is evaluated and kept as best; nullptr: the weights as they are.
  virtual WeightAverage* weight_average() { return nullptr; }

 protected:
  const AlgorithmContext& context() const { return context_; }
  ImageModel& model() { return *context_.model; }

 private:
  AlgorithmContext context_;
};

using AlgorithmRegistry = Registry<std::shared_ptr<Algorithm>, AlgorithmContext>;

// "erm"; register_algorithms.cpp
AlgorithmRegistry& algorithms();

// Adds `tensors` to `state` with `prefix` in front of their names, for tensors_under() of io/checkpoint.h to find.
void add_tensors(AlgorithmState& state, std::string_view prefix, const NamedTensors& tensors);

}  // namespace sparsight
