// The interface of routers: tokens in, Routing out.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include "sparsight/core/forward_mode.h"
#include "sparsight/core/options.h"
#include "sparsight/core/random.h"
#include "sparsight/engine/router.h"
#include "sparsight/moe/expert_removal.h"
#include "sparsight/moe/losses/routing_loss.h"
#include "sparsight/moe/router_cost.h"
#include "sparsight/moe/routing.h"
#include "sparsight/moe/soft_routing.h"

namespace sparsight {

// The sizes of a router.
struct RouterShape {
  int64_t width = 0;    // D
  int64_t experts = 0;  // E
};

// Optional information about the tokens.
struct RoutingContext {
  std::map<std::string, at::Tensor> samples;   // by purpose: replace the router's random samples ("noise": [N,E])
  std::set<std::string>* requested = nullptr;  // receives the purposes for which the router uses samples
  at::Tensor valid;                            // [N] bool: false for padding
  at::Tensor image;  // [B] int64: number of each image in the dataset; undefined: 0 .. B-1. Keys the noise, so that
                     // an image has the same noise in any batch
  at::Tensor group;  // [B] int64: images with the same number share the experts' buffers; undefined: [capacity] group
  at::Tensor token_id;  // [N] int64: key of hash routing; undefined: the token's position in its image
  at::Tensor target;    // [B,E]: target probability of each expert for guided routers
  at::Tensor priority;  // [N] of any floating type: order of slots for [capacity] priority = "given"
};

struct RouterInput {
  at::Tensor tokens;   // [N,D] of any floating type; all images of the batch
  TokenLayout layout;  // layout.images * layout.per_image = N
  std::string layer;   // path of the MoE layer; names the random streams
  ForwardMode mode = {};
  StepRandom random = {};  // of noise
  RoutingContext context = {};
  bool threshold_gradient = true;  // [losses] threshold_gradient, for routers that compute smooth_load
};

class Router : public torch::nn::Module {
 public:
  // The decision before capacity, which the layer applies. Scores are computed in fp32 (fp64 for fp64 weights) for any
  // dtype of the tokens.
  Routing route(const RouterInput& input);

  // Losses of the router's paper, which [losses] can override. None by default.
  virtual std::vector<LossWeight> default_losses() const { return {}; }

  // Declares the settings bound to the values in use, so that those that are `live` can follow a schedule. None by
  // default.
  virtual void declare(OptionSet&) {}

  // Whether it is meant to decide once for all MoE layers of a model, as [router] scope = "auto" asks; else each layer
  // has its own.
  virtual bool decides_for_model() const { return false; }

  // Whether its routings are soft: weighted means of tokens instead of choices.
  virtual bool mixes_tokens() const { return false; }

  // Whether in passes of this mode the experts of an image depend on the other images of the batch, capacity aside.
  virtual bool mixes_images(const ForwardMode&) const { return false; }

  // Losses that only this router has, in addition to default_losses(); they may depend on its buffers.
  virtual std::vector<RouterLoss> own_losses() const { return {}; }
  // Numbers about a routing, computed without gradients and before capacity, shown by metrics.jsonl, eval,
  // `sparsight moe` and Python. Always the same names, also without tokens.
  virtual std::vector<RoutingMetric> metrics(const Routing&) const { return {}; }

  // The purposes for which this router samples random numbers (router_normal, router_uniform) under any settings: the
  // keys that RoutingContext::samples may have.
  virtual std::vector<std::string> random_purposes() const { return {}; }
  // Whether its routings in training have noise, which the load losses need. By default where it samples random
  // numbers.
  virtual bool has_noise() const { return !random_purposes().empty(); }
  // Whether it needs RoutingContext::target with its settings: a run whose dataset has none is then an error.
  virtual bool needs_target() const { return false; }

  // Its registered name and shape; "" and 0 if it was made by its constructor.
  const std::string& registered_name() const { return registered_name_; }
  const RouterShape& registered_shape() const { return registered_shape_; }
  void set_registered(const std::string& name, const RouterShape& shape) {
    registered_name_ = name;
    registered_shape_ = shape;
  }

  // Whether post_step_update() does anything.
  virtual bool needs_post_step_update() const { return false; }
  // Called after each optimiser step with this router's detached routings of all accumulated batches. It may only
  // change buffers, so that its state is saved with the weights.
  virtual void post_step_update(const std::vector<Routing>& routings);

  // This router without tensors, in evaluation: the same choices. Raises Error, saying why, where that is impossible,
  // as where it draws random numbers in evaluation. By default it is.
  virtual std::unique_ptr<engine::Router> compile() const;

  // How it loses experts. By default it refuses.
  virtual RouterRemoval expert_removal() const;

  // Cost of an image with layout.per_image tokens. By default an estimate, marked as such: each matrix among the
  // parameters is a linear map of each token, and a token gets as many experts as the setting `k` says, or one.
  virtual RouterCost cost(const TokenLayout& layout) const;
  void assume_choices(int64_t k) { assumed_choices_ = k; }

 protected:
  // Raises Error for compile().
  [[noreturn]] void fail_compile(const std::string& why) const;

  // The decision; called by route() with padding set to 0. It need not set layer, layout, groups, valid, target or
  // priority, and may assign padding to experts: route() removes those assignments. A router whose decision about one
  // token depends on others must look at input.context.valid itself.
  virtual Routing choose(const RouterInput& input) = 0;

 private:
  Routing validated(const RouterInput& input);  // choose(), and validate_routing.h
  void report_metrics(const RouterInput& input, Routing& routing);

  std::once_flag named_;
  std::vector<std::string> metric_names_;  // of the first routing
  int64_t assumed_choices_ = 1;
  std::string registered_name_;
  RouterShape registered_shape_;
};

// A router that mixes tokens instead of choosing experts.
class SoftRouter : public Router {
 public:
  bool mixes_tokens() const final { return true; }

 protected:
  // What choose() is to the other routers. It need not set layer, layout or valid.
  virtual SoftRouting mix(const RouterInput& input) = 0;
  Routing choose(const RouterInput& input) final;
};

// N(0,1) for each row and expert of `like` ([R,E]; the result is fp32, or fp64 as `like`), from the layer's stream
// `purpose`: a function of (seed, step, layer, purpose, number of the image, row of the image, expert) and of nothing
// else. R is a multiple of the images: a row for each token, or for each image.
at::Tensor router_normal(const RouterInput& input, const at::Tensor& like, const std::string& purpose);
// The same for U[0,1); the other has rows of `columns`: [R,columns].
at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, const std::string& purpose);
at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, int64_t columns,
                          const std::string& purpose);

}  // namespace sparsight
