#include "sparsight/moe/router.h"

#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/validate_router.h"
#include "sparsight/moe/validate_routing.h"
#include "sparsight/ops/random_fill.h"

namespace sparsight {

Routing Router::validated(const RouterInput& input) {
  Routing routing;
  call_router(*this, input.layer, "choose", [&] {
    const auto version = [&] { return input.tokens.is_inference() ? 0 : input.tokens._version(); };
    const auto before = version();
    routing = choose(input);
    if (version() != before) throw InvalidRouting("it changed its input tokens in place; work on a copy");
    if (routing.soft && !mixes_tokens())
      throw InvalidRouting("it has a soft routing; routers that mix tokens derive from SoftRouter");
    validate_routing(routing, {input.tokens, registered_shape_.experts, [this] { return parameters(); }});
  });
  // Only later steps decide these.
  routing.losses.clear();
  routing.group = routing.capacity = routing.position = routing.valid = at::Tensor();
  routing.group_count = 1;
  return routing;
}

void Router::report_metrics(const RouterInput& input, Routing& routing) {
  const torch::NoGradGuard no_grad;
  routing.metrics = checked_metrics(*this, input, routing);
  std::vector<std::string> names;
  for (const RoutingMetric& metric : routing.metrics) names.push_back(metric.name);
  std::call_once(named_, [&] { metric_names_ = names; });
  if (metric_names_ == names) return;
  const auto list = [](const std::vector<std::string>& of) {
    std::string text;
    for (const std::string& name : of) text += (text.empty() ? "" : ", ") + name;
    return "[" + text + "]";
  };
  fail(router_title(*this, input.layer), ": metrics() has the names ", list(names), ", at first they were ",
       list(metric_names_), "; return the same ones for every routing");
}

Routing Router::route(const RouterInput& input) {
  const at::Tensor& valid = input.context.valid;
  for (const at::Tensor* of_tokens : {&valid, &input.context.priority})
    SPARSIGHT_CHECK(!of_tokens->defined() || (of_tokens->dim() == 1 && of_tokens->size(0) == input.tokens.size(0)));
  Routing routing;
  if (valid.defined()) {
    // Padding may be NaN; its logits must not reach the gradient of the router's weights.
    RouterInput cleared = input;
    cleared.tokens = input.tokens.masked_fill(valid.logical_not().unsqueeze(1), 0);
    routing = validated(cleared);
    routing.valid = valid;
    if (!routing.soft) drop_padding(routing, valid);
  } else {
    routing = validated(input);
  }
  routing.layer = input.layer;
  routing.layout = input.layout;
  routing.tokens = input.tokens.size(0);
  routing.target = input.context.target;
  routing.priority = input.context.priority;
  report_metrics(input, routing);
  return routing;
}

std::unique_ptr<engine::Router> Router::compile() const { fail_compile("it has no compile()"); }

void Router::fail_compile(const std::string& why) const {
  fail("the router ", registered_name_, " has no form without tensors: ", why);
}

void Router::post_step_update(const std::vector<Routing>&) {}

RouterRemoval Router::expert_removal() const {
  return {"does not say which of its tensors belong to which expert (Router::expert_removal)"};
}

RouterCost Router::cost(const TokenLayout& layout) const {
  Cost of_token;
  for (const at::Tensor& p : parameters()) {
    of_token = of_token + parameters_cost(p.numel());
    if (p.dim() >= 2) of_token.multiply_adds += p.numel();
  }
  of_token.assumed = true;
  return token_choice_cost(of_token, assumed_choices_, layout);
}

Routing SoftRouter::choose(const RouterInput& input) {
  SoftRouting soft = mix(input);
  soft.layer = input.layer;
  soft.layout = input.layout;
  soft.valid = input.context.valid;
  soft.sampled = input.context.requested && !input.context.requested->empty();
  Routing routing;
  routing.experts = soft.experts;
  routing.valid = input.context.valid;
  routing.soft = std::make_shared<const SoftRouting>(std::move(soft));
  return routing;
}

namespace {

// The samples that the caller gave for `purpose`, or undefined.
at::Tensor given_samples(const RouterInput& input, const std::string& purpose, const at::Tensor& like,
                         at::IntArrayRef sizes) {
  if (input.context.requested) input.context.requested->insert(purpose);
  const auto given = input.context.samples.find(purpose);
  if (given == input.context.samples.end()) return {};
  if (given->second.sizes() != sizes)
    fail("the samples \"", purpose, "\" have the shape ", given->second.sizes(), ", expected ", sizes);
  return given->second.to(like.options());
}

// Each image has its own row of random samples in the stream.
RandomRows rows_of_images(const RouterInput& input, int64_t rows, int64_t columns) {
  const int64_t images = input.layout.images;
  SPARSIGHT_CHECK(images > 0 ? rows % images == 0 : rows == 0);
  return {images, images == 0 ? 0 : rows / images * columns, input.context.image};
}

}  // namespace

at::Tensor router_normal(const RouterInput& input, const at::Tensor& like, const std::string& purpose) {
  if (const at::Tensor given = given_samples(input, purpose, like, like.sizes()); given.defined()) return given;
  return normal_rows(like, rows_of_images(input, like.size(0), like.size(1)),
                     input.random.stream(input.layer + ".router." + purpose))
      .view(like.sizes());
}

at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, const std::string& purpose) {
  return router_uniform(input, like, like.size(1), purpose);
}

at::Tensor router_uniform(const RouterInput& input, const at::Tensor& like, int64_t columns,
                          const std::string& purpose) {
  if (const at::Tensor given = given_samples(input, purpose, like, {like.size(0), columns}); given.defined())
    return given;
  return uniform_rows(like, rows_of_images(input, like.size(0), columns),
                      input.random.stream(input.layer + ".router." + purpose))
      .view({like.size(0), columns});
}

}  // namespace sparsight
