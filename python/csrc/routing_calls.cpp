#include "python/csrc/routing_calls.h"

#include <algorithm>
#include <functional>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <nlohmann/json.hpp>

#include "python/csrc/check_index.h"
#include "python/csrc/router_setup.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/core/json_text.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/route_tokens.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight::python {
namespace {

// Called while the call's weights are bound. leaves: the tensors to differentiate with respect to, one per input.
using Then = std::function<void(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& leaves)>;

// Kernels run below autograd; this guard re-enables autograd during its lifetime.
class UnderAutograd {
 public:
  UnderAutograd() : keys_(with_autograd()), mode_(true) {}

 private:
  static c10::impl::LocalDispatchKeySet with_autograd() {
    c10::impl::LocalDispatchKeySet keys = c10::impl::tls_local_dispatch_key_set();
    keys.excluded_ = keys.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    return keys;
  }

  c10::impl::ForceDispatchKeyGuard keys_;
  c10::AutoGradMode mode_;
};

TokenLayout token_layout(const at::Tensor& tokens, int64_t images, int64_t prefix) {
  if (tokens.dim() != 2 || !tokens.is_floating_point())
    fail("a router needs floating-point tokens [N,D], got ", tokens.scalar_type(), " ", tokens.sizes());
  const int64_t count = tokens.size(0);
  if (images < 0 || (images == 0 ? count != 0 : count % images != 0))
    fail(count, " tokens cannot be split evenly into ", images, " images");
  // With 0 images, assume the minimum size: only the prefix.
  const int64_t per_image = images == 0 ? prefix : count / images;
  if (prefix > per_image)
    fail("the router was made for images with prefix = ", prefix, " leading tokens, got images of ", per_image,
         " tokens");
  return {images, per_image, prefix, 0, 0};
}

void check_size(const at::Tensor& tensor, const char* name, std::vector<int64_t> expected) {
  if (tensor.defined() && tensor.sizes() != at::IntArrayRef(expected))
    fail(name, " has the shape ", tensor.sizes(), ", expected ", at::IntArrayRef(expected));
}

void check_valid(const at::Tensor& valid, int64_t tokens) {
  check_size(valid, "valid", {tokens});
  if (valid.defined() && valid.scalar_type() != torch::kBool) fail("valid must be bool, got ", valid.scalar_type());
}

void check_target(const at::Tensor& target, int64_t images, int64_t experts) {
  check_size(target, "target", {images, experts});
  check_real(target, "target");
  if (target.defined() && !target.isfinite().logical_and_(target >= 0).all().item<bool>())
    fail("target must be finite numbers of at least 0: the target distribution over experts of each image");
}

// Samples that the router never uses are an error; those that it uses only in training are always accepted.
void check_samples(const std::vector<std::string>& samples, const RouterSetup& setup) {
  for (const std::string& name : samples) {
    if (std::find(setup.samples.begin(), setup.samples.end(), name) != setup.samples.end()) continue;
    if (setup.samples.empty())
      fail_usage("unknown samples \"", name, "\": the router ", setup.name, " takes no samples");
    fail_usage("unknown samples \"", name, "\" of the router ", setup.name, suggestion(name, setup.samples));
  }
}

std::vector<std::string> split(std::string_view names) {
  std::vector<std::string> parts;
  while (!names.empty()) {
    const size_t comma = names.find(',');
    parts.emplace_back(names.substr(0, comma));
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  }
  return parts;
}

at::ScalarType wide_type(const RouterSetup& setup, const at::Tensor& tokens) {
  const at::Tensor& like = setup.weights.empty() ? tokens : setup.weights[0];
  return like.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
}

at::Tensor matrix_or_nothing(const at::Tensor& x, const RouterSetup& setup, const at::Tensor& like) {
  return x.defined() ? x.contiguous() : torch::zeros({0, setup.experts}, like.options().requires_grad(false));
}

// Choices that are not made get expert -1 and kept false.
std::vector<at::Tensor> to_outputs(const Routing& r, const at::Tensor& losses, const RouterSetup& setup) {
  at::Tensor gate = r.gate, token = r.token, expert = r.expert, rank = r.rank, kept = r.kept;
  const int64_t k = setup.per_token, assignments = r.tokens * k;
  if (k > 0 && token.size(0) != assignments) {
    const at::Tensor slot = token * k + rank, all = torch::arange(assignments, token.options());
    gate = torch::zeros({assignments}, gate.options()).index_copy(0, slot, gate);
    expert = torch::full({assignments}, -1, expert.options()).index_copy(0, slot, expert);
    kept = torch::zeros({assignments}, kept.options()).index_copy(0, slot, kept);
    token = all.floor_divide(k);
    rank = all.remainder(k);
  }
  const at::Tensor logits = matrix_or_nothing(r.clean_logits, setup, gate);
  const at::Tensor scores = matrix_or_nothing(r.scores, setup, gate);
  at::Tensor group_scores = torch::zeros({0, 0}, gate.options().requires_grad(false));
  at::Tensor group_chosen = torch::zeros({0, 0}, kept.options());
  if (r.groups) {
    group_scores = r.groups->scores;
    group_chosen = torch::zeros(group_scores.sizes(), kept.options())
                       .index_put_({r.groups->token, r.groups->expert}, torch::ones({}, kept.options()));
  }
  std::vector<double> reported;
  for (const RoutingMetric& metric : r.metrics) reported.push_back(metric.value);
  const at::Tensor metrics = torch::tensor(reported, gate.options().requires_grad(false));
  std::vector<at::Tensor> outputs{gate, losses, logits,         scores,       token,        expert,
                                  rank, kept,   r.chosen_count, group_scores, group_chosen, metrics};
  for (size_t i = 0; i < outputs.size(); ++i) {  // outputs of an operator must not alias
    outputs[i] = outputs[i].contiguous();
    for (size_t j = 0; j < i; ++j)
      if (outputs[i].is_alias_of(outputs[j])) outputs[i] = outputs[i].clone();
  }
  return outputs;
}

// In the order of setup.weighed; 0 for losses that the routing does not have.
at::Tensor router_losses(const Routing& routing, const RouterSetup& setup, at::ScalarType type) {
  const auto options = routing.gate.options().dtype(type).requires_grad(false);
  if (!setup.mode.losses || setup.weighed.empty()) return torch::zeros({0}, options);
  std::vector<at::Tensor> values;
  for (const LossWeight& loss : setup.weighed) {
    const auto found = std::ranges::find(routing.losses, loss.name, &NamedLoss::name);
    values.push_back(found == routing.losses.end() ? torch::zeros({}, options) : found->value.to(type));
  }
  return torch::stack(values);
}

void run_route(const RoutingCall& call, std::vector<at::Tensor> inputs, const Then& then) {
  constexpr size_t kBeforeWeights = 6;
  if (inputs.size() < kBeforeWeights) fail("route takes at least ", kBeforeWeights, " inputs, got ", inputs.size());
  const at::Tensor &tokens = inputs[0], &valid = inputs[2], &target = inputs[4], &priority = inputs[5];
  if (tokens.dim() != 2) fail("a router needs tokens [N,D], got ", tokens.sizes());
  const std::shared_ptr<RouterSetup> cached = router_setup(call.config, tokens.size(1));
  RouterSetup& setup = *cached;
  if (setup.router->mixes_tokens()) fail("this router mixes tokens and has no routing; call mix");
  const TokenLayout layout = token_layout(tokens, call.images, setup.prefix);
  check_valid(valid, tokens.size(0));
  check_size(inputs[3], "token_id", {tokens.size(0)});
  if (inputs[3].defined() && !at::isIntegralType(inputs[3].scalar_type(), /*includeBool=*/false))
    fail("token_id must be integers, got ", inputs[3].scalar_type());
  check_target(target, call.images, setup.experts);
  check_size(priority, "priority", {tokens.size(0)});
  check_real(priority, "priority");
  if (inputs[1].numel() != 1 || !at::isIntegralType(inputs[1].scalar_type(), /*includeBool=*/false))
    fail("seed must be one integer, got ", inputs[1].scalar_type(), " ", inputs[1].sizes());
  const std::vector<std::string> samples = split(call.samples);
  check_samples(samples, setup);
  const size_t weights = setup.weights.size();
  if (inputs.size() != kBeforeWeights + weights + samples.size())
    fail("the router needs ", weights, " weights (", join(setup.weight_names), ") and ", samples.size(),
         " samples, got ", inputs.size() - kBeforeWeights, " tensors for them");
  const BoundWeights bound(setup, at::TensorList(inputs.data() + kBeforeWeights, weights));
  RouterInput input{tokens, layout, "moe", setup.mode};
  input.random.seed = static_cast<uint64_t>(inputs[1].item<int64_t>());
  input.context.valid = valid;
  input.context.token_id = inputs[3];
  // Losses subtract targets, which fails for bool and wraps for unsigned integers.
  input.context.target = target.defined() && !target.is_floating_point() ? target.to(wide_type(setup, tokens)) : target;
  input.context.priority = priority;
  for (size_t i = 0; i < samples.size(); ++i) {
    check_real(inputs[kBeforeWeights + weights + i], cat("samples \"", samples[i], "\""));
    input.context.samples[samples[i]] = inputs[kBeforeWeights + weights + i];
  }
  const Routing routing = route_tokens(*setup.router, input, {setup.capacity, setup.losses});
  const at::Tensor losses = router_losses(routing, setup, wide_type(setup, tokens));
  std::copy(setup.weights.begin(), setup.weights.end(), inputs.begin() + kBeforeWeights);
  then(to_outputs(routing, losses, setup), inputs);
}

void run_mix(const RoutingCall& call, std::vector<at::Tensor> inputs, const Then& then) {
  constexpr size_t kBeforeWeights = 2;
  if (inputs.size() < kBeforeWeights) fail("mix takes at least ", kBeforeWeights, " inputs, got ", inputs.size());
  const at::Tensor &tokens = inputs[0], &valid = inputs[1];
  if (tokens.dim() != 2) fail("a router needs tokens [N,D], got ", tokens.sizes());
  const std::shared_ptr<RouterSetup> cached = router_setup(call.config, tokens.size(1));
  RouterSetup& setup = *cached;
  if (!setup.router->mixes_tokens()) fail("this router chooses experts and does not mix tokens; call route");
  check_valid(valid, tokens.size(0));
  const BoundWeights bound(setup, at::TensorList(inputs).slice(kBeforeWeights));
  RouterInput input{tokens, token_layout(tokens, call.images, setup.prefix), "moe", setup.mode};
  input.context.valid = valid;
  const SoftRouting routing = *setup.router->route(input).soft;
  std::copy(setup.weights.begin(), setup.weights.end(), inputs.begin() + kBeforeWeights);
  then({routing.dispatch.contiguous(), routing.combine.contiguous(), routing.logits.contiguous()}, inputs);
}

const RoutingLoss& loss_named(const std::string& name) { return entry_named(name, routing_losses(), "loss"); }

// Positions of a loss's inputs.
constexpr size_t kLogits = 0, kNoisyLogits = 1, kNoiseScale = 2, kScores = 3, kGate = 4, kExpert = 5, kValid = 6,
                 kTarget = 7, kThreshold = 8, kToken = 9, kLossInputs = 10;

// Sets the tokens and choices of `routing` from expert and gate, [N,K] or, with token, [A]. Expert -1 means no choice.
void choose(Routing& routing, const std::string& loss, const std::vector<at::Tensor>& inputs, const at::Tensor& ranked,
            int64_t k) {
  const at::Tensor& token = inputs[kToken];
  at::Tensor expert = inputs[kExpert], gate = inputs[kGate];
  if (!expert.defined() && !token.defined()) {
    if (!ranked.defined() || ranked.dim() != 2 || ranked.size(1) != routing.experts || k < 1 || k > routing.experts)
      fail("the loss needs expert [N,K], or logits or scores [N,", routing.experts,
           "] and 1 <= k <= ", routing.experts);
    expert = top_experts(ranked.detach(), k);
  }
  if (!expert.defined() || expert.dim() != (token.defined() ? 1 : 2))
    fail("expert must be int64 [N,K], or [A] together with token [A], the token of each choice; got ",
         expert.defined() ? expert.sizes() : at::IntArrayRef());
  expert = checked_index(expert, "expert", -1, routing.experts);
  check_size(gate, "gate", expert.sizes().vec());
  if (!gate.defined()) {
    if (loss == "importance") fail("the importance loss needs the gates of the chosen experts");
    gate = torch::ones(expert.sizes(), ranked.defined() ? ranked.options().requires_grad(false) : torch::kFloat);
  }
  if (token.defined()) {
    check_size(token, "token", expert.sizes().vec());
    if (ranked.defined())
      routing.tokens = ranked.size(0);
    else if (inputs[kValid].defined())
      routing.tokens = inputs[kValid].size(0);
    else if (token.numel() > 0)
      routing.tokens = token.max().item<int64_t>() + 1;
    routing.token = checked_index(token, "token", 0, routing.tokens);
    routing.expert = expert;
    routing.gate = gate;
    routing.rank = torch::zeros_like(expert);  // losses that use ranks are only defined with per_token
  } else {
    routing.tokens = expert.size(0);
    choose_per_token(routing, expert, gate);
  }
  select_assignments(routing, torch::nonzero(routing.expert >= 0).squeeze(1));
}

// An integer setting of a loss, at least `minimum`.
int64_t read_integer(const Json& settings, const char* name, int64_t otherwise, int64_t minimum) {
  if (!settings.contains(name)) return otherwise;
  const Json& value = settings.at(name);
  if (!value.is_number_integer()) fail_usage(name, " must be an integer, got ", value.dump());
  if (value.get<int64_t>() < minimum) fail_usage(name, " must be at least ", minimum, ", got ", value.dump());
  return value.get<int64_t>();
}

// Converts the floating-point inputs to fp32, or to fp64 if one is. In half precision a sum of ones stops growing at
// 256 (bf16) or 2048 (fp16).
std::vector<at::Tensor> widened(std::vector<at::Tensor> inputs) {
  constexpr size_t kReal[] = {kLogits, kNoisyLogits, kNoiseScale, kScores, kGate, kTarget, kThreshold};
  at::ScalarType type = torch::kFloat;
  for (const size_t i : kReal)
    if (inputs[i].defined() && inputs[i].scalar_type() == torch::kDouble) type = torch::kDouble;
  for (const size_t i : kReal)
    if (inputs[i].defined()) inputs[i] = inputs[i].to(type);
  return inputs;
}

void run_loss(const RoutingCall& call, const std::vector<at::Tensor>& leaves, const Then& then) {
  if (leaves.size() != kLossInputs) fail("a loss takes ", kLossInputs, " inputs, got ", leaves.size());
  constexpr const char* kNames[kLossInputs] = {"logits", "noisy_logits", "noise_scale", "scores",    "gate",
                                               "expert", "valid",        "target",      "threshold", "token"};
  for (size_t i = 0; i < kLossInputs; ++i) check_real(leaves[i], kNames[i]);
  const NoAutocast no_autocast;
  const std::vector<at::Tensor> inputs = widened(leaves);
  const Json settings = parse_json_object(call.config, "config");
  const RoutingLoss& loss = loss_named(settings.at("loss").get<std::string>());
  LossVariants variants;
  OptionSet set;
  variants.declare(set);
  assign(set, settings.value("variants", Json::object()), "variants");

  Routing routing;
  routing.experts = read_integer(settings, "experts", 0, 1);
  routing.clean_logits = inputs[kLogits];
  routing.noisy_logits = inputs[kNoisyLogits].defined() ? inputs[kNoisyLogits] : inputs[kLogits];
  routing.noise_scale = inputs[kNoiseScale];
  routing.scores = inputs[kScores];
  routing.threshold = inputs[kThreshold];
  const at::Tensor ranked = routing.noisy_logits.defined() ? routing.noisy_logits : routing.scores;
  choose(routing, loss.name, inputs, ranked, read_integer(settings, "k", 1, 1));
  for (const size_t i : {kLogits, kNoisyLogits, kScores})
    check_size(inputs[i], "logits or scores", {routing.tokens, routing.experts});
  check_valid(inputs[kValid], routing.tokens);
  check_target(inputs[kTarget], call.images, routing.experts);
  check_size(inputs[kThreshold], "threshold", {routing.experts});
  if (call.images < 1 || routing.tokens % call.images != 0)
    fail(routing.tokens, " tokens cannot be split evenly into ", call.images, " images");
  routing.layout = {call.images, routing.tokens / call.images, 0, 0, 0};
  set_consecutive_groups(routing, read_integer(settings, "group_tokens", 0, 0));
  routing.target = inputs[kTarget];
  if (inputs[kValid].defined()) drop_padding(routing, inputs[kValid]);
  const at::Tensor value = loss.value(routing, variants);
  if (!value.defined() && inputs[kToken].defined())
    fail("the loss \"", loss.name,
         "\" counts the K choices of each token: it needs expert [N,K] and is not defined if experts choose tokens");
  if (!value.defined()) fail("the loss \"", loss.name, "\" is missing an input: ", loss.help);
  then({value}, leaves);
}

void run_then(const RoutingCall& call, const std::vector<at::Tensor>& inputs, const Then& then) {
  switch (call.kind) {
    case RoutingCallKind::route:
      return run_route(call, inputs, then);
    case RoutingCallKind::mix:
      return run_mix(call, inputs, then);
    case RoutingCallKind::loss:
      return run_loss(call, inputs, then);
  }
  fail("kind must be 0 (route), 1 (mix) or 2 (loss), got ", static_cast<int64_t>(call.kind));
}

// A gradient of output number `place`, as autograd passes it back: like the output, or undefined.
void check_gradient(const at::Tensor& grad, const at::Tensor& output, size_t place) {
  if (!grad.defined()) return;
  if (!output.is_floating_point()) fail("output ", place, " is ", output.scalar_type(), " and has no gradient");
  if (grad.sizes() != output.sizes() || grad.scalar_type() != output.scalar_type() || grad.device() != output.device())
    fail("gradient ", place, " must be ", output.scalar_type(), " ", output.sizes(), " on ", output.device(),
         " like its output, got ", grad.scalar_type(), " ", grad.sizes(), " on ", grad.device());
}

}  // namespace

std::vector<at::Tensor> run(const RoutingCall& call) {
  const c10::AutoGradMode no_grad(false);
  std::vector<at::Tensor> result;
  run_then(call, call.inputs, [&](const auto& outputs, const auto&) { result = outputs; });
  return result;
}

std::vector<at::Tensor> run_backward(const RoutingCall& call, const std::vector<at::Tensor>& grads,
                                     const std::vector<bool>& needs) {
  if (needs.size() != call.inputs.size())
    fail("needs must have one entry for each of the ", call.inputs.size(), " inputs, got ", needs.size());
  const UnderAutograd under_autograd;
  std::vector<at::Tensor> inputs = call.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!needs[i]) continue;
    if (!inputs[i].defined() || !inputs[i].is_floating_point()) fail("input ", i, " can have no gradient");
    inputs[i] = inputs[i].detach().requires_grad_(true);
  }
  std::vector<at::Tensor> result;
  run_then(call, inputs, [&](const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& leaves) {
    if (grads.size() > outputs.size()) fail("there are ", outputs.size(), " outputs, got ", grads.size(), " gradients");
    for (size_t i = 0; i < grads.size(); ++i) check_gradient(grads[i], outputs[i], i);
    std::vector<at::Tensor> wanted, of, from;
    for (size_t i = 0; i < leaves.size(); ++i)
      if (needs[i]) wanted.push_back(leaves[i]);
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i].defined() && outputs[i].requires_grad()) {
        of.push_back(outputs[i]);
        from.push_back(grads[i]);
      }
    if (of.empty() || wanted.empty())
      result.resize(wanted.size());
    else
      result = torch::autograd::grad(of, wanted, from, std::nullopt, /*create_graph=*/false, /*allow_unused=*/true);
    for (size_t i = 0; i < wanted.size(); ++i)
      result[i] = result[i].defined() ? result[i].detach().contiguous()
                                      : torch::zeros(wanted[i].sizes(), wanted[i].options().requires_grad(false));
  });
  return result;
}

}  // namespace sparsight::python
