// The interface of training algorithms: how minibatches update the weights. The Trainer (trainer.h) runs steps,
// evaluation, checkpoints and the log and knows nothing about losses; losses, optimisers, copies and averages of the
// model belong to the algorithm. A program registers its own algorithm before it reads a configuration:
//
//   algorithms().add<MyOptions>("my_algorithm", "what it does", [](const MyOptions& options, const AlgorithmContext&
//   context) {
//     return std::make_shared<Mine>(options, context);
//   });
#pragma once

#include <map>
#include <string>

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
  // contain the weights of that model. Prediction from a checkpoint does not involve the algorithm, unless its
  // registration says AlgorithmFacts::predicts (trained_predictor.h).
  virtual ModelOutput predict(const ModelInput& input);

  virtual AlgorithmState state() const = 0;
  // Raises Error if `state` is incomplete or does not match. The model's weights are already loaded.
  virtual void load_state(const AlgorithmState& state) = 0;

  // The weight average that is evaluated and saved as best; nullptr: the plain weights.
  virtual WeightAverage* weight_average() { return nullptr; }

  // Tensors of the algorithm that predict() reads, in shared memory. The best checkpoint contains them, so that the
  // final evaluation predicts with those of its weights.
  virtual NamedTensors prediction_tensors() const { return {}; }

  // Told of every evaluation on the validation split, before the next step: its mean task loss.
  virtual void validated(double /*loss*/) {}
  // Whether validated() has found that training should end.
  virtual bool has_converged() const { return false; }
  // Whether it can train with [train] task_loss = "sigmoid_cross_entropy", and so on multi-label data.
  virtual bool takes_sigmoid_loss() const { return false; }
  // Whether its task loss is LossStep::task_loss(), which has the weights of [train] class_weights.
  virtual bool takes_class_weights() const { return false; }

  // Called after the last step. Returns whether what weight_average() is now are the weights to save as best.
  virtual bool finish() { return false; }

 protected:
  const AlgorithmContext& context() const { return context_; }
  ImageModel& model() { return *context_.model; }

 private:
  AlgorithmContext context_;
};

// What a program can know of an algorithm before it makes one; given with its registration.
struct AlgorithmFacts {
  std::string title = {};    // in tables: "GroupDRO"; {}: its name
  int64_t domains = 1;       // training domains that it needs at least
  int64_t compares = 1;      // training domains from which on it has something to compare
  bool takes_ranks = false;  // its minibatches may be shared out over processes: what it makes of them are sums that
                             // LossStep adds up
  // Why not, where it does not take ranks.
  std::string one_process = "it does not say whether its minibatches can be shared out";
  bool predicts = false;  // with more than the model's weights: it overrides predict() and prediction_tensors()
};

class AlgorithmRegistry : public Registry<std::shared_ptr<Algorithm>, AlgorithmContext> {
 public:
  using Registry::Registry;

  template <class Options, class Factory>
  void add(const std::string& name, const std::string& summary, Factory factory, const AlgorithmFacts& facts = {}) {
    Registry::add<Options>(name, summary, factory);
    facts_[name] = facts;
  }

  // Raises UsageError for an unknown name.
  AlgorithmFacts facts(const std::string& name) const {
    get(name);
    const auto found = facts_.find(name);
    return found == facts_.end() ? AlgorithmFacts() : found->second;
  }
  // The name in tables.
  std::string title(const std::string& name) const {
    const AlgorithmFacts known = facts(name);
    return known.title.empty() ? name : known.title;
  }

 private:
  std::map<std::string, AlgorithmFacts> facts_;
};

// Those of register_algorithms.cpp, and what a program adds (dg/algorithms/register_domain_algorithms.h).
AlgorithmRegistry& algorithms();

// Names of Algorithm::prediction_tensors() in a best checkpoint begin with it.
inline constexpr std::string_view kPredictionTensors = "prediction/";

// Adds `tensors` to `state`, their names prefixed with `prefix`, for tensors_under() of io/checkpoint.h.
void add_tensors(AlgorithmState& state, std::string_view prefix, const NamedTensors& tensors);
// Copies the tensors of `state` with this prefix into `tensors`. Raises Error if one is missing or of another shape.
void load_tensors(const NamedTensors& tensors, const AlgorithmState& state, std::string_view prefix);

}  // namespace sparsight
