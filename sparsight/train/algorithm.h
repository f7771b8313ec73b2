// The interface of training algorithms: how minibatches update the weights. The Trainer (trainer.h) runs steps,
// evaluation, checkpoints and the log and knows nothing about losses; losses, optimisers, copies and averages of the
// model belong to the algorithm. A program registers its own algorithm before it reads a configuration:
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
  StepRandom random;     // of the step; sample from its named streams, so that no generator state needs saving
  double lr_factor = 1;  // from the learning rate schedule
  double progress = 0;   // fraction of the training that is done, 0 to 1
  bool logged = false;   // whether `details` of this update will be written
};

struct UpdateResult {
  NamedMeans means;               // averaged over the steps between two lines of metrics.jsonl
  Json details = Json::object();  // further keys of such a line, from the last update before it
  std::string not_finite;  // "loss", "auxiliary loss x" or "gradient" if that was not finite; weights and state are
                           // then unchanged
  std::string remedy;      // what the user can do about it; empty: the usual advice
};

// Everything an algorithm needs to resume bit for bit, in addition to the model's weights.
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

  // The forward pass that is evaluated during training and at its end; by default that of the model. Checkpoints
  // contain the weights of that model, and prediction from a checkpoint does not involve the algorithm.
  virtual ModelOutput predict(const ModelInput& input);

  virtual AlgorithmState state() const = 0;
  // Raises Error if `state` is incomplete or does not match. The model's weights are already loaded.
  virtual void load_state(const AlgorithmState& state) = 0;

  // The weight average that is evaluated and saved as best; nullptr: the plain weights.
  virtual WeightAverage* weight_average() { return nullptr; }

  // Tensors of the algorithm that predict() reads, in shared memory. The best checkpoint contains them, so that the
  // final evaluation predicts with those of its weights.
  virtual NamedTensors prediction_tensors() const { return {}; }

  // Told of every evaluation on the validation split, before the next step: its loss, the mean cross entropy.
  virtual void validated(double /*loss*/) {}
  // Whether validated() has found that training should end.
  virtual bool has_converged() const { return false; }
  // Called after the last step. Returns whether what weight_average() is now are the weights to save as best.
  virtual bool finish() { return false; }

 protected:
  const AlgorithmContext& context() const { return context_; }
  ImageModel& model() { return *context_.model; }

 private:
  AlgorithmContext context_;
};

using AlgorithmRegistry = Registry<std::shared_ptr<Algorithm>, AlgorithmContext>;

// "erm"; register_algorithms.cpp
AlgorithmRegistry& algorithms();

// Adds those of domain generalisation to the list; defined above this folder, in dg/algorithms/.
void register_domain_algorithms(AlgorithmRegistry& list);

// Adds `tensors` to `state`, their names prefixed with `prefix`, for tensors_under() of io/checkpoint.h.
void add_tensors(AlgorithmState& state, std::string_view prefix, const NamedTensors& tensors);
// Copies the tensors of `state` with this prefix into `tensors`. Raises Error if one is missing or of another shape.
void load_tensors(const NamedTensors& tensors, const AlgorithmState& state, std::string_view prefix);

}  // namespace sparsight
