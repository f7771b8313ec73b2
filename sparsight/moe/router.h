// The interface of routers: tokens in, Routing out.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "sparsight/core/random.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// What a router is made for.
struct RouterShape {
  int64_t width = 0;    // D
  int64_t experts = 0;  // E
};

// What is known of the pool's tokens beside their values; all of it optional.
struct PoolInfo {
  std::map<std::string, at::Tensor> draws;     // by purpose: used in place of a router's random draws ("noise": [N,E])
  std::set<std::string>* asked_for = nullptr;  // receives the purposes that a router had draws for, given or not
  at::Tensor valid;                            // [N] bool: false for padding
  int64_t first_token = 0;  // number of the pool's first token in the whole batch: noise is keyed by token numbers, so
                            // that splitting a batch changes no token's noise
  at::Tensor token_id;      // [N] int64: what hash routing goes by; undefined: a token's place in its image
  at::Tensor target;        // [B,E]: the share of each expert that a guided router should give an image
  at::Tensor priority;      // [N] of any floating type: who gets a place first, for [capacity] priority = "given"
};

struct RouterInput {
  at::Tensor tokens;   // [N,D] of any floating type; all images of the batch
  TokenLayout layout;  // layout.images * layout.per_image = N
  std::string layer;   // path of the MoE layer; names its random streams
  StepRandom random;   // noise, drawn only while is_training()
  PoolInfo pool = {};
  int64_t group_tokens = 0;        // as in Routing
  bool threshold_gradient = true;  // of [losses]: for routers that estimate their smooth_load themselves
};

class Router : public torch::nn::Module {
 public:
  // The complete decision, everything kept: capacity is applied by the layer. Scores are computed in fp32 (fp64 for
  // fp64 weights) whatever the type of the tokens.
  Routing route(const RouterInput& input);

  // The losses that [losses] applies where it does not say otherwise. None by default.
  virtual std::vector<LossWeight> paper_losses() const { return {}; }

  // Whether after_step does anything.
  virtual bool learns_from_routings() const { return false; }
  // Called after each optimiser step with this router's detached routings of all batches that the step accumulated.
  // What it changes must be a buffer, so that it is saved with the weights.
  virtual void after_step(const std::vector<Routing>& routings);

 protected:
  // What route() calls, with the tokens of padding set to 0. It need not fill in layer, layout, group_tokens, valid,
  // target or priority, and may assign padding to experts: route() takes those assignments away. A router whose
  // decision about one token depends on others must look at input.pool.valid itself.
  virtual Routing choose(const RouterInput& input) = 0;
};

// A router that mixes tokens instead of choosing experts.
class SoftRouter : public Router {
 public:
  virtual SoftRouting mix(const RouterInput& input) = 0;

 protected:
  Routing choose(const RouterInput& input) final;  // an internal error: the layer calls mix()
};

// N(0,1) for each token and expert of the pool ([N,E] fp32, or fp64 as `like`), from the layer's stream `purpose`: a
// function of (seed, step, layer, purpose, number of the token in the batch, expert) and of nothing else.
at::Tensor router_normal(const RouterInput& input, const at::Tensor& like, const std::string& purpose);
// The same for U[0,1) and rows of `columns`: [N,columns].
at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, int64_t columns,
                          const std::string& purpose);

}  // namespace sparsight
