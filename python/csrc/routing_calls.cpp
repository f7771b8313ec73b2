#include "python/csrc/routing_calls.h"

#include <functional>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <nlohmann/json.hpp>

#include "python/csrc/router_setup.h"
#include "sparsight/core/config.h"
#include "sparsight/core/error.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight::python {
namespace {

// Called while the call's weights are bound. leaves: what to differentiate by, one for each input.
using Then = std::function<void(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& leaves)>;

// Kernels run below autograd; while it lives this one does not.
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

TokenLayout layout_of(const at::Tensor& tokens, int64_t images, int64_t prefix) {
  if (tokens.dim() != 2 || !tokens.is_floating_point())
    fail("a router needs floating-point tokens [N,D], got ", tokens.scalar_type(), " ", tokens.sizes());
  const int64_t count = tokens.size(0);
  if (images < 0 || (images == 0 ? count != 0 : count % images != 0))
    fail(count, " tokens are not ", images, " images of equally many");
  return {images, images == 0 ? 0 : count / images, prefix, 0, 0};
}

void check_size(const at::Tensor& tensor, const char* name, std::vector<int64_t> expected) {
  if (tensor.defined() && tensor.sizes() != at::IntArrayRef(expected))
    fail(name, " has the shape ", tensor.sizes(), ", expected ", at::IntArrayRef(expected));
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

// What was not chosen: expert -1, not kept.
std::vector<at::Tensor> outputs_of(const Routing& r, const at::Tensor& losses, const RouterSetup& setup) {
  at::Tensor gate = r.gate, token = r.token, expert = r.expert, rank = r.rank, kept = r.kept;
  const int64_t k = setup.per_token, places = r.tokens * k;
  if (k > 0 && token.size(0) != places) {
    const at::Tensor place = token * k + rank, all = torch::arange(places, token.options());
    gate = torch::zeros({places}, gate.options()).index_copy(0, place, gate);
    expert = torch::full({places}, -1, expert.options()).index_copy(0, place, expert);
    kept = torch::zeros({places}, kept.options()).index_copy(0, place, kept);
    token = all.floor_divide(k);
    rank = all.remainder(k);
  }
  const at::Tensor logits = matrix_or_nothing(r.clean_logits, setup, gate);
  const at::Tensor scores = matrix_or_nothing(r.scores, setup, gate);
  std::vector<at::Tensor> outputs{gate, losses, logits, scores, token, expert, rank, kept, r.chosen_count};
  for (size_t i = 0; i < outputs.size(); ++i) {  // outputs of operators share no memory
    outputs[i] = outputs[i].contiguous();
    for (size_t j = 0; j < i; ++j)
      if (outputs[i].is_alias_of(outputs[j])) outputs[i] = outputs[i].clone();
  }
  return outputs;
}

at::Tensor losses_of(const Routing& routing, const RouterSetup& setup, at::ScalarType type) {
  const auto options = routing.gate.options().dtype(type).requires_grad(false);
  if (!setup.wants_losses) return torch::zeros({0}, options);
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < setup.losses.weights.size(); ++i) {
    if (setup.losses.weights[i] <= 0) continue;
    const at::Tensor value = routing_losses()[i].value(routing, setup.losses.variants);
    values.push_back(value.defined() ? value.to(type) : torch::zeros({}, options));
  }
  return values.empty() ? torch::zeros({0}, options) : torch::stack(values);
}

void run_route(const RoutingCall& call, std::vector<at::Tensor> inputs, const Then& then) {
  constexpr size_t kBeforeWeights = 5;
  const at::Tensor &tokens = inputs[0], &valid = inputs[2], &target = inputs[4];
  if (tokens.dim() != 2) fail("a router needs tokens [N,D], got ", tokens.sizes());
  RouterSetup& setup = router_setup(call.config, tokens.size(1));
  if (dynamic_cast<SoftRouter*>(setup.router.get())) fail("this router mixes tokens: it has no routing, call mix");
  const TokenLayout layout = layout_of(tokens, call.images, setup.prefix);
  check_size(valid, "valid", {tokens.size(0)});
  check_size(inputs[3], "token_id", {tokens.size(0)});
  check_size(target, "target", {call.images, setup.experts});
  const std::vector<std::string> draws = split(call.draws);
  const size_t weights = inputs.size() - kBeforeWeights - std::min(draws.size(), inputs.size() - kBeforeWeights);
  const BoundWeights bound(setup, at::TensorList(inputs.data() + kBeforeWeights, weights));
  RouterInput input{tokens, layout, "moe", {}, {}, group_tokens(setup.capacity, layout)};
  input.random.seed = static_cast<uint64_t>(inputs[1].item<int64_t>());
  input.pool.valid = valid;
  input.pool.token_id = inputs[3];
  input.pool.target = target;
  for (size_t i = 0; i < draws.size(); ++i) input.pool.draws[draws[i]] = inputs[kBeforeWeights + weights + i];
  Routing routing = setup.router->route(input);
  apply_capacity(routing, setup.capacity, capacity_factor(setup.capacity, setup.training));
  const at::Tensor losses = losses_of(routing, setup, wide_type(setup, tokens));
  std::copy(setup.weights.begin(), setup.weights.end(), inputs.begin() + kBeforeWeights);
  then(outputs_of(routing, losses, setup), inputs);
}

void run_mix(const RoutingCall& call, std::vector<at::Tensor> inputs, const Then& then) {
  constexpr size_t kBeforeWeights = 2;
  const at::Tensor &tokens = inputs[0], &valid = inputs[1];
  if (tokens.dim() != 2) fail("a router needs tokens [N,D], got ", tokens.sizes());
  RouterSetup& setup = router_setup(call.config, tokens.size(1));
  auto* soft = dynamic_cast<SoftRouter*>(setup.router.get());
  if (!soft) fail("this router chooses experts: it has no mixture, call route");
  check_size(valid, "valid", {tokens.size(0)});
  const BoundWeights bound(setup, at::TensorList(inputs).slice(kBeforeWeights));
  RouterInput input{tokens, layout_of(tokens, call.images, setup.prefix), "moe", {}, {}, 0};
  input.pool.valid = valid;
  const SoftRouting routing = soft->mix(input);
  std::copy(setup.weights.begin(), setup.weights.end(), inputs.begin() + kBeforeWeights);
  then({routing.dispatch.contiguous(), routing.combine.contiguous(), routing.logits.contiguous()}, inputs);
}

const RoutingLoss& loss_named(const std::string& name) {
  std::vector<std::string> names;
  for (const RoutingLoss& loss : routing_losses()) {
    if (loss.name == name) return loss;
    names.push_back(loss.name);
  }
  fail_usage("unknown loss \"", name, "\"; did you mean \"", nearest_name(name, names), "\"? (known: ", join(names),
             ")");
}

void run_loss(const RoutingCall& call, const std::vector<at::Tensor>& inputs, const Then& then) {
  const Json settings = Json::parse(call.config);
  const RoutingLoss& loss = loss_named(settings.at("loss").get<std::string>());
  LossVariants variants;
  OptionSet set;
  variants.declare(set);
  assign(set, settings.value("variants", Json::object()), "variants");

  Routing routing;
  routing.experts = settings.at("experts").get<int64_t>();
  routing.group_tokens = settings.value("group_tokens", int64_t{0});
  routing.clean_logits = inputs[0];
  routing.noisy_logits = inputs[1].defined() ? inputs[1] : inputs[0];
  routing.noise_scale = inputs[2];
  routing.scores = inputs[3];
  routing.threshold = inputs[8];
  at::Tensor gate = inputs[4], expert = inputs[5];
  const int64_t k = settings.value("k", int64_t{1});
  const at::Tensor ranked = routing.noisy_logits.defined() ? routing.noisy_logits : routing.scores;
  if (!expert.defined()) {
    if (!ranked.defined() || ranked.dim() != 2 || ranked.size(1) != routing.experts || k < 1 || k > routing.experts)
      fail("the loss needs expert [N,K], or logits or scores [N,", routing.experts,
           "] and 1 <= k <= ", routing.experts);
    expert = top_experts(ranked.detach(), k);
  }
  if (expert.dim() != 2 || expert.scalar_type() != torch::kLong)
    fail("expert must be int64 [N,K], got ", expert.scalar_type(), " ", expert.sizes());
  if (expert.numel() > 0 && (expert.min().item<int64_t>() < 0 || expert.max().item<int64_t>() >= routing.experts))
    fail("expert must lie between 0 and ", routing.experts - 1);
  routing.tokens = expert.size(0);
  for (size_t i : {0, 1, 3}) check_size(inputs[i], "logits or scores", {routing.tokens, routing.experts});
  check_size(gate, "gate", expert.sizes().vec());
  check_size(inputs[6], "valid", {routing.tokens});
  check_size(inputs[7], "target", {call.images, routing.experts});
  check_size(inputs[8], "threshold", {routing.experts});
  if (call.images < 1 || routing.tokens % call.images != 0)
    fail(routing.tokens, " tokens are not ", call.images, " images of equally many");
  if (!gate.defined()) {
    if (loss.name == "importance") fail("the importance loss needs gate [N,K]");
    gate = torch::ones(expert.sizes(), ranked.defined() ? ranked.options().requires_grad(false) : torch::kFloat);
  }
  routing.layout = {call.images, routing.tokens / call.images, 0, 0, 0};
  routing.target = inputs[7];
  choose_per_token(routing, expert, gate);
  finish_routing(routing);
  if (inputs[6].defined()) drop_padding(routing, inputs[6]);
  const at::Tensor value = loss.value(routing, variants);
  if (!value.defined()) fail("the loss \"", loss.name, "\" needs more than was given: ", loss.help);
  then({value}, inputs);
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
  SPARSIGHT_CHECK(needs.size() == call.inputs.size());
  const UnderAutograd under_autograd;
  std::vector<at::Tensor> inputs = call.inputs;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (needs[i]) inputs[i] = inputs[i].detach().requires_grad_(true);
  std::vector<at::Tensor> result;
  run_then(call, inputs, [&](const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& leaves) {
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
