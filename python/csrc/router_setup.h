// Routers for the operators: settings come as a JSON string and weights as arguments, so that operators are pure
// functions and Python owns the weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/moe/capacity.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight::python {

// The settings, JSON with the keys of the library's configuration:
//   {"router": {"name": "softmax_topk", "k": 2}, "experts": 8, "prefix": 0, "training": true,
//    "capacity": {"factor": 1.25}, "losses": {"router_z": 0.001}}
// prefix: number of leading tokens of each image that are not patches. Without "losses" none are computed. Raises
// UsageError for an unknown router or setting; the message suggests the nearest name.
struct RouterSetup {
  RouterSetup(const std::string& config, int64_t dim);

  int64_t experts = 0, prefix = 0;
  ForwardMode mode;  // training or evaluation, and whether to compute losses
  std::shared_ptr<Router> router;
  CapacityOptions capacity;
  LossOptions losses;                // with the weights of the router's paper filled in
  std::vector<LossWeight> weighed;   // the computed losses: those of `losses` above 0, then the router's own
  std::string name;                  // of the router
  std::vector<std::string> samples;  // names of the random samples that a caller may pass
  std::vector<std::string> weight_names;
  std::vector<at::Tensor> weights;  // the router's parameters, then its buffers; each call binds its weights to them
  std::vector<std::vector<int64_t>> shapes;  // of these
  size_t parameters = 0;                     // how many of `weights` are parameters

  // Properties of its routings, determined by routing 0 tokens.
  int64_t per_token = 0;  // K; 0 if the number of assignments depends on the tokens
  bool has_logits = false, has_scores = false;
  std::vector<std::string> metrics;  // names of the router's own metrics
  int64_t groups = 0;                // G of strictly balanced two-level gating; otherwise 0
};

// The calling thread's setup for this configuration, created on first use. A thread keeps those that it used last.
std::shared_ptr<RouterSetup> router_setup(std::string_view config, int64_t dim);

// During its lifetime the setup's router uses the given weights, without a copy.
class BoundWeights {
 public:
  // Raises Error for a wrong number of weights, or wrong shapes or types.
  BoundWeights(RouterSetup& setup, at::TensorList weights);
  ~BoundWeights();
  BoundWeights(const BoundWeights&) = delete;
  BoundWeights& operator=(const BoundWeights&) = delete;

 private:
  RouterSetup& setup_;
};

// JSON: {"weights": [{"name", "shape", "parameter", "integer"}], "soft", "learns", "losses": {name: weight},
// "per_token", "logits", "scores", "groups", "samples": [name], "metrics": [name], "averaged": [names of those of
// "losses" that several routers average instead of sum]}.
std::string describe_router(const std::string& config, int64_t dim);
// JSON: {name: {"summary", "options": [{"name", "type", "allowed", "default", "help"}]}}.
std::string list_routers();
// JSON: {name: summary}.
std::string list_losses();
// The library's initial weights for a router at `path`, in order.
std::vector<at::Tensor> initial_weights(const std::string& config, int64_t dim, int64_t seed, const std::string& path);
// The input of post_step_update(): scores [N,E], chosen_count [E] and valid [N] of each routing; for strictly balanced
// two-level gating also those of its G groups.
struct PostStepInput {
  at::TensorList scores, chosen_count, valid;
  at::TensorList group_scores, group_count;  // empty for other routers
};
// Runs post_step_update() of a router that learns from routings. Returns all weights; buffers may have changed.
std::vector<at::Tensor> weights_after_update(const std::string& config, int64_t dim, at::TensorList weights,
                                             const PostStepInput& from);

}  // namespace sparsight::python
