// The interface of an optimiser: it updates parameters from their gradients, and exposes its state as named tensors for
// checkpoints.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sparsight/core/registry.h"
#include "sparsight/io/safetensors.h"

namespace sparsight {

// A trainable parameter as the optimiser sees it.
struct OptimizedParameter {
  std::string name;
  at::Tensor value;
  bool decay = true;                        // false: excluded from weight decay
  double lr_factor = 1;                     // multiplies the step's learning rate
  std::optional<double> weight_decay = {};  // instead of the optimiser's own
  at::Tensor average = {};  // of its values (weight_average.h), which step() then updates; may be undefined
};

struct OptimizerStep {
  double lr = 0;
  double gradient_factor = 1;  // multiplies all gradients, for clipping
  double average_share = 0;    // AverageRule::share
};

class Optimizer {
 public:
  explicit Optimizer(std::vector<OptimizedParameter> parameters);
  virtual ~Optimizer() = default;

  // One update with learning rate `lr`, times each parameter's factor, and then of the averages. Parameters without a
  // gradient stay as they are. Gradients may be overwritten.
  void step(const OptimizerStep& options);
  void step(double lr) { step(OptimizerStep{.lr = lr}); }
  void zero_grad();

  // State tensors as "<parameter name>/<state name>", such as "head.weight/exp_avg".
  NamedTensors state() const;
  // Copies every tensor of state() from `tensors`; raises Error for a missing one or a wrong shape.
  void load_state(const NamedTensors& tensors);

  const std::vector<OptimizedParameter>& parameters() const { return parameters_; }
  // Whether the update of a slice of the parameter's first axis depends on the other slices.
  virtual bool mixes_slices(size_t) const { return false; }

 protected:
  // Adds one state tensor per parameter, zero at the start, of the parameter's shape (or a scalar).
  size_t add_state(const std::string& name, bool scalar = false);
  // The same, initialised by start(parameter index); undefined for a parameter without this state.
  size_t add_state(const std::string& name, const std::function<at::Tensor(size_t)>& start);

  // Updates the parameters at `which`, all of which have a gradient. `lr` and group_weight_decay() are the same for
  // all.
  virtual void update(const std::vector<size_t>& which, double lr) = 0;
  // The same with the gradient's factor and the averages; by default one after the other.
  virtual void update(const std::vector<size_t>& which, const OptimizerStep& options);

  // The weight decay of the parameters at `which` where that of the optimiser is `own`.
  double group_weight_decay(const std::vector<size_t>& which, double own) const;

  std::vector<at::Tensor> values(const std::vector<size_t>& which) const;
  std::vector<at::Tensor> gradients(const std::vector<size_t>& which) const;
  std::vector<at::Tensor> states(size_t slot, const std::vector<size_t>& which) const;
  const at::Tensor& state(size_t slot, size_t index) const { return slots_[slot].tensors[index]; }

 private:
  struct StateSlot {
    std::string name;
    std::vector<at::Tensor> tensors;  // one per parameter
  };
  std::vector<OptimizedParameter> parameters_;
  std::vector<StateSlot> slots_;
};

using OptimizerRegistry = Registry<std::shared_ptr<Optimizer>, std::vector<OptimizedParameter>>;

// "sgd", "adam", ...
OptimizerRegistry& optimizers();

}  // namespace sparsight
