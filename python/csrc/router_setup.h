// A router as the operators know it: its settings are a text and its weights are arguments, so that the operators are
// pure functions and Python owns the weights.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sparsight/moe/capacity.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router.h"

namespace sparsight::python {

// What the text says, JSON in the terms of the library's configuration:
//   {"router": {"name": "softmax_topk", "k": 2}, "experts": 8, "prefix": 0, "training": true,
//    "capacity": {"factor": 1.25}, "losses": {"router_z": 0.001}}
// prefix: leading tokens of each image that are no patch. Without "losses" none are computed. Raises UsageError for an
// unknown router or setting, naming the nearest one.
struct RouterSetup {
  RouterSetup(const std::string& config, int64_t dim);

  int64_t experts = 0, prefix = 0;
  ForwardMode mode;  // training or evaluation, with losses where they are wanted
  std::shared_ptr<Router> router;
  CapacityOptions capacity;
  LossOptions losses;                // with the weights of the router's paper filled in
  std::vector<LossWeight> weighed;   // the losses that are computed: those of `losses` above 0, then the router's own
  std::string name;                  // of the router
  std::vector<std::string> samples;  // names of the random samples that a caller may give it
  std::vector<std::string> weight_names;
  std::vector<at::Tensor> weights;  // the router's own parameters, then its buffers: holders of what calls are given
  std::vector<std::vector<int64_t>> shapes;  // of these
  size_t parameters = 0;                     // how many of `weights` are parameters

  // What a routing looks like, found by routing no tokens at all.
  int64_t per_token = 0;  // K; 0 where the number of assignments depends on the tokens
  bool has_logits = false, has_scores = false;
  std::vector<std::string> metrics;  // names of what the router reports itself
  int64_t groups = 0;                // G of strictly balanced gating on two levels; else 0
};

// The calling thread's setup for this text, made by its first call.
RouterSetup& router_setup(std::string_view config, int64_t dim);

// While it lives, the setup's router computes with the given weights; nothing is copied.
class BoundWeights {
 public:
  // Raises Error for a wrong number of weights or wrong shapes.
  BoundWeights(RouterSetup& setup, at::TensorList weights);
  ~BoundWeights();
  BoundWeights(const BoundWeights&) = delete;
  BoundWeights& operator=(const BoundWeights&) = delete;

 private:
  RouterSetup& setup_;
};

// JSON: {"weights": [{"name", "shape", "parameter", "integer"}], "soft", "learns", "losses": {name: weight},
// "per_token", "logits", "scores", "groups", "samples": [name], "metrics": [name]}.
std::string describe_router(const std::string& config, int64_t dim);
// JSON: {name: {"summary", "options": [{"name", "type", "allowed", "default", "help"}]}}.
std::string list_routers();
// JSON: {name: summary}.
std::string list_losses();
// The weights, in order, that the library would start with for a router at `path`.
std::vector<at::Tensor> initial_weights(const std::string& config, int64_t dim, int64_t seed, const std::string& path);
// What a router learns from: scores [N,E], chosen_count [E], valid [N] of each routing, and, of strictly balanced
// gating on two levels, the same of its G groups.
struct LearnedFrom {
  at::TensorList scores, chosen_count, valid;
  at::TensorList group_scores, group_count;  // empty of other routers
};
// post_step_update() of a router that learns from routings. Returns all weights; buffers may have moved.
std::vector<at::Tensor> weights_after_update(const std::string& config, int64_t dim, at::TensorList weights,
                                             const LearnedFrom& from);

}  // namespace sparsight::python
