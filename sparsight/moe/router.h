// The interface of routers: tokens in, Routing out.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "sparsight/core/forward_mode.h"
#include "sparsight/core/options.h"
#include "sparsight/core/random.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router_cost.h"
#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// What a router is made for.
struct RouterShape {
  int64_t width = 0;    // D
  int64_t experts = 0;  // E
};

// What is known of the tokens beside their values; all of it optional.
struct RoutingContext {
  std::map<std::string, at::Tensor> samples;  // by purpose: used in place of a router's random samples ("noise": [N,E])
  std::set<std::string>* requested = nullptr;  // receives the purposes that a router had samples for, given or not
  at::Tensor valid;                            // [N] bool: false for padding
  at::Tensor image;     // [B] int64: number of each image in the whole batch or dataset; undefined: 0 .. B-1. Noise is
                        // keyed by it, so that an image keeps its noise whichever others are routed with it
  at::Tensor group;     // [B] int64: images of one number share the experts' buffers; undefined: [capacity] group says
  at::Tensor token_id;  // [N] int64: what hash routing goes by; undefined: a token's place in its image
  at::Tensor target;    // [B,E]: the share of each expert that a guided router should give an image
  at::Tensor priority;  // [N] of any floating type: who gets a place first, for [capacity] priority = "given"
};

struct RouterInput {
  at::Tensor tokens;   // [N,D] of any floating type; all images of the batch
  TokenLayout layout;  // layout.images * layout.per_image = N
  std::string layer;   // path of the MoE layer; names its random streams
  ForwardMode mode = {};
  StepRandom random = {};  // of noise
  RoutingContext context = {};
  bool threshold_gradient = true;  // of [losses]: for routers that estimate their smooth_load themselves
};

class Router : public torch::nn::Module {
 public:
  // The complete decision, everything kept: capacity is applied by the layer. Scores are computed in fp32 (fp64 for
  // fp64 weights) whatever the type of the tokens.
  Routing route(const RouterInput& input);

  // The losses that [losses] applies where it does not say otherwise. None by default.
  virtual std::vector<LossWeight> default_losses() const { return {}; }

  // Declares the router's settings bound to what it uses, so that those that are `live` can follow a schedule. By
  // default none can.
  virtual void declare(OptionSet&) {}

  // Whether its routings are `soft`: weighted means of tokens instead of choices.
  virtual bool mixes_tokens() const { return false; }

  // Losses that only this router has, beside those of default_losses(); they may change from step to step with its
  // buffers.
  virtual std::vector<RouterLoss> own_losses() const { return {}; }
  // Numbers about a routing of this router, computed without gradients and before capacity: metrics.jsonl, eval,
  // `sparsight moe` and Python show them. Always the same names, also for no tokens.
  virtual std::vector<RoutingMetric> metrics(const Routing&) const { return {}; }

  // The purposes for which some setting of this router samples random numbers (router_normal, router_uniform): what a
  // caller may give samples for.
  virtual std::vector<std::string> random_purposes() const { return {}; }
  // Whether it cannot do, as it is set, without RoutingContext::target: a run whose data has none is then an error.
  virtual bool needs_target() const { return false; }

  // What it is registered as and was made for; "" and no experts of one made by its constructor.
  const std::string& registered_name() const { return registered_name_; }
  const RouterShape& registered_shape() const { return registered_shape_; }
  void set_registered(const std::string& name, const RouterShape& shape) {
    registered_name_ = name;
    registered_shape_ = shape;
  }

  // Whether post_step_update does anything.
  virtual bool needs_post_step_update() const { return false; }
  // Called after each optimiser step with this router's detached routings of all batches that the step accumulated.
  // What it changes must be a buffer, so that it is saved with the weights.
  virtual void post_step_update(const std::vector<Routing>& routings);

  // What an image of layout.per_image tokens costs. By default each matrix among the parameters is a linear map of each
  // token, the parameters are those registered, and a token gets as many experts as the router's setting `k` says, or
  // one where it has no such setting; the cost then says that it is assumed.
  virtual RouterCost cost(const TokenLayout& layout) const;
  void assume_choices(int64_t k) { assumed_choices_ = k; }

 protected:
  // What route() calls, with the tokens of padding set to 0. It need not fill in layer, layout, groups, valid, target
  // or priority, and may assign padding to experts: route() takes those assignments away. A router whose decision about
  // one token depends on others must look at input.context.valid itself.
  virtual Routing choose(const RouterInput& input) = 0;

 private:
  Routing validated(const RouterInput& input);  // choose(), held to what was asked

  int64_t assumed_choices_ = 1;
  std::string registered_name_;
  RouterShape registered_shape_;
};

// A router that mixes tokens instead of choosing experts.
class SoftRouter : public Router {
 public:
  bool mixes_tokens() const final { return true; }

 protected:
  // As choose(); it need not fill in layer, layout or valid.
  virtual SoftRouting mix(const RouterInput& input) = 0;
  Routing choose(const RouterInput& input) final;
};

// N(0,1) for each row and expert of `like` ([R,E]; the result is fp32, or fp64 as `like`), from the layer's stream
// `purpose`: a function of (seed, step, layer, purpose, number of the image, row of the image, expert) and of nothing
// else. R is a multiple of the images: a row for each token, or for each image.
at::Tensor router_normal(const RouterInput& input, const at::Tensor& like, const std::string& purpose);
// The same for U[0,1) and rows of `columns`: [R,columns].
at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, int64_t columns,
                          const std::string& purpose);

}  // namespace sparsight
