#include "sparsight/analysis/layer_probe.h"

#include <algorithm>
#include <set>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/readers/npy.h"
#include "sparsight/io/weights.h"
#include "sparsight/moe/register_moe.h"
#include "sparsight/moe/routing_stats.h"
#include "sparsight/nn/init.h"
#include "sparsight/nn/parameter_memory.h"

namespace sparsight {
namespace {

constexpr char kPath[] = "moe";  // names the layer's random streams

bool is_weight(const std::string& name) {
  return name.starts_with("router.") || name.starts_with("experts.") || name.starts_with("shared.");
}

// Raises Error for complex and 8-bit types: torch supports few operations on them.
at::Tensor real_numbers(const std::string& name, const at::Tensor& tensor) {
  for (const auto type : {torch::kHalf, torch::kBFloat16, torch::kFloat, torch::kDouble})
    if (tensor.scalar_type() == type) return tensor;
  fail("tensor \"", printable(name), "\" is of type ", tensor.scalar_type(),
       "; it must have a floating-point type of 16, 32 or 64 bits");
}

at::Tensor integers(const std::string& name, const at::Tensor& tensor) {
  if (!at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true))
    fail("tensor \"", name, "\" is of type ", tensor.scalar_type(), "; it must have an integer type");
  return tensor;
}

// Target probabilities of experts: not negative, with rows that sum to 1.
at::Tensor shares(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor rows = real_numbers(name, tensor).to(torch::kDouble);
  if (rows.dim() == 2 && !((rows >= 0).all().item<bool>() && ((rows.sum(1) - 1).abs() < 0.01).all().item<bool>()))
    fail("tensor \"", name, "\" holds target probabilities of experts: numbers >= 0 whose rows sum to 1");
  return tensor;
}

void take_samples(LayerProbeInput& input, const std::string& purpose, const std::string& name,
                  const at::Tensor& tensor) {
  if (!input.context.samples.emplace(purpose, real_numbers(name, tensor)).second)
    fail("the tensors \"noise\" and \"noise.noise\" mean the same samples; leave one of them out");
}

void take(LayerProbeInput& input, const std::string& name, const at::Tensor& tensor) {
  if (name == "tokens")
    input.tokens = real_numbers(name, tensor);
  else if (name == "grad")
    input.gradient = real_numbers(name, tensor);
  else if (name == "noise")
    take_samples(input, "noise", name, tensor);
  else if (name.starts_with("noise."))
    take_samples(input, name.substr(6), name, tensor);
  else if (name == "valid")
    input.context.valid = integers(name, tensor).to(torch::kBool);
  else if (name == "token_id")
    input.context.token_id = integers(name, tensor).to(torch::kLong);
  else if (name == "target")
    input.context.target = shares(name, tensor);
  else if (name == "priority")
    input.context.priority = real_numbers(name, tensor);
  else if (is_weight(name))
    input.weights.emplace_back(name, tensor);
  else
    fail("tensor \"", printable(name),
         "\" is unknown (known: tokens, grad, noise, noise.<purpose>, valid, token_id, target, priority, "
         "router.*, experts.*, shared.*)");
}

void check_shape(const std::string& name, const at::Tensor& tensor, const std::vector<int64_t>& expected) {
  if (tensor.defined() && tensor.sizes() != expected)
    fail("tensor \"", name, "\" has the shape ", tensor.sizes(), ", expected ", at::IntArrayRef(expected));
}

void check_input(const LayerProbeInput& input, const TokenLayout& layout, int64_t experts) {
  const int64_t tokens = layout.images * layout.per_image;
  check_shape("grad", input.gradient, input.tokens.sizes().vec());
  check_shape("valid", input.context.valid, {tokens});
  check_shape("token_id", input.context.token_id, {tokens});
  check_shape("priority", input.context.priority, {tokens});
  check_shape("target", input.context.target, {layout.images, experts});
  if (!input.tokens.isfinite().all().item<bool>()) fail("tensor \"tokens\" holds NaN or infinite values");
}

// The tensor in the layer's type. Raises Error if finite numbers would become infinite.
at::Tensor in_type(const std::string& name, const at::Tensor& tensor, at::ScalarType type) {
  at::Tensor converted = tensor.to(type);
  if ((converted.isinf() & tensor.isfinite()).any().item<bool>())
    fail("tensor \"", printable(name), "\" holds values beyond the range of fp32; use --float64");
  return converted;
}

void check_tokens(const at::Tensor& tokens) {
  if (!tokens.defined()) fail("the file has no tensor \"tokens\"");
  if (!tokens.is_floating_point() || tokens.dim() < 2 || tokens.dim() > 3 || tokens.size(-1) == 0)
    fail("tokens must be floating-point numbers of the shape [N,D] or [B,S,D], got ", tokens.scalar_type(), " ",
         tokens.sizes());
}

TokenLayout token_layout(const at::Tensor& tokens, const LayerProbeOptions& options) {
  check_tokens(tokens);
  TokenLayout layout{1, tokens.size(0), options.prefix, options.grid_h, options.grid_w};
  if (tokens.dim() == 3) layout.images = tokens.size(0), layout.per_image = tokens.size(1);
  const int64_t cells = options.grid_h * options.grid_w;
  if (options.prefix > layout.per_image || (cells > 0 && options.prefix + cells != layout.per_image))
    fail_usage("images of ", layout.per_image, " tokens are not --prefix ", options.prefix,
               cells > 0 ? cat(" and a --grid of ", options.grid_h, " by ", options.grid_w) : "", " tokens");
  return layout;
}

// Checks that the router used all noise samples of the input: unused ones are misspelt, unless it makes none in
// evaluation.
void check_samples(const RoutingContext& context, const std::set<std::string>& requested, bool training) {
  for (const auto& [purpose, samples] : context.samples) {
    if (requested.contains(purpose)) continue;
    if (!training && requested.empty())
      log_warning("tensor \"", purpose == "noise" ? "noise" : "noise." + printable(purpose),
                  "\" is not used in --mode eval");
    else
      fail("the router makes no samples \"", printable(purpose),
           "\" (it makes: ", requested.empty() ? "none" : join({requested.begin(), requested.end()}),
           "); leave the tensor out");
  }
}

// Warns about losses with a weight that were not computed.
void warn_of_missing_losses(const LossOptions& wanted, const std::vector<NamedLoss>& computed) {
  for (size_t i = 0; i < wanted.weights.size(); ++i) {
    const std::string& name = routing_losses()[i].name;
    const auto is_it = [&](const NamedLoss& loss) { return loss.name == name; };
    if (wanted.weights[i] > 0 && std::ranges::none_of(computed, is_it))
      log_warning("the loss ", name, " is not computed: this router or the file lacks the values that it needs");
  }
}

// Module::to() would also convert a router's integer counters.
void convert(torch::nn::Module& layer, at::ScalarType type) {
  for (const std::vector<at::Tensor>& tensors : {layer.parameters(), layer.buffers()})
    for (const at::Tensor& tensor : tensors)
      if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(type));
}

// Copies the input's weights into the layer; returns the names of those that it did not have.
std::vector<std::string> load_into(MoeLayer& layer, const NamedTensors& weights) {
  std::map<std::string, at::Tensor> targets;
  for (const auto& [name, tensor] : named_weights(layer)) targets[name] = tensor;
  const torch::NoGradGuard no_grad;
  for (const auto& [name, source] : weights) {
    const auto target = targets.find(name);
    if (target == targets.end()) {
      std::vector<std::string> known;
      for (const auto& entry : named_weights(layer)) known.push_back(entry.first);
      fail("the layer has no weight \"", printable(name), "\" (it has: ", join(known), ")");
    }
    check_shape(name, source, target->second.sizes().vec());
    target->second.copy_(target->second.is_floating_point()
                             ? in_type(name, real_numbers(name, source), target->second.scalar_type())
                             : source);
    targets.erase(target);
  }
  std::vector<std::string> missing;
  for (const auto& [name, tensor] : targets) missing.push_back(name);
  return missing;
}

void add(NamedTensors& tensors, const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined()) tensors.emplace_back(name, tensor.detach().contiguous());
}

at::Tensor as_tensor(const std::vector<double>& values) { return torch::tensor(values, torch::kDouble); }

// The router's decision before capacity, with its scores.
void add_choice(NamedTensors& tensors, const std::string& prefix, const Routing& routing) {
  for (const auto& [name, tensor] : NamedTensors{{"clean_logits", routing.clean_logits},
                                                 {"noisy_logits", routing.noisy_logits},
                                                 {"noise_scale", routing.noise_scale},
                                                 {"scores", routing.scores},
                                                 {"threshold", routing.threshold},
                                                 {"token", routing.token},
                                                 {"expert", routing.expert},
                                                 {"rank", routing.rank},
                                                 {"gate", routing.gate},
                                                 {"chosen_count", routing.chosen_count}})
    add(tensors, prefix + name, tensor);
}

void add_routing(NamedTensors& tensors, const Routing& routing) {
  add_choice(tensors, "", routing);
  if (routing.groups) add_choice(tensors, "groups.", *routing.groups);
  for (const auto& [name, tensor] : NamedTensors{{"kept", routing.kept},
                                                 {"position", routing.position},
                                                 {"capacity", routing.capacity},
                                                 {"kept_count", routing.offsets.diff()}})
    add(tensors, name, tensor);
  const at::Tensor gate = (routing.gate * routing.kept).detach();
  add(tensors, "gates",
      torch::zeros({routing.tokens, routing.experts}, gate.options())
          .index_put_({routing.token, routing.expert}, gate));
  const RoutingStats stats = routing_stats(routing);
  add(tensors, "importance", as_tensor(stats.importance));
  add(tensors, "load", as_tensor(stats.smooth_load));
  for (const RoutingMetric& metric : routing.metrics)
    add(tensors, "metric." + metric.name, torch::tensor(metric.value, torch::kDouble));
}

void add_soft_routing(NamedTensors& tensors, const SoftRouting& routing) {
  add(tensors, "logits", routing.logits);
  add(tensors, "dispatch", routing.dispatch);
  add(tensors, "combine", routing.combine);
}

// d(objective) into the leaves; false where there is nothing to differentiate.
bool backward(const MoeOutput& output, const at::Tensor& gradient) {
  at::Tensor objective;
  const auto plus = [&](const at::Tensor& term) { objective = objective.defined() ? objective + term : term; };
  if (gradient.defined()) plus((output.tokens * gradient.reshape(output.tokens.sizes())).sum());
  for (const NamedLoss& loss : output.routing.losses) plus(loss.weight * loss.value);
  if (!objective.defined() || !objective.requires_grad()) return false;
  objective.backward();
  return true;
}

}  // namespace

LayerProbeInput read_layer_probe_input(const std::string& path) {
  LayerProbeInput input;
  if (path.ends_with(".npy")) {
    input.tokens = read_npy(path);
  } else {
    for (const auto& [name, tensor] : read_safetensors(path).tensors) take(input, name, tensor);
  }
  check_tokens(input.tokens);
  return input;
}

LayerProbe run_layer_probe(const LayerProbeInput& input, const LayerProbeOptions& options) {
  const TokenLayout layout = token_layout(input.tokens, options);
  const auto type = options.float64 ? torch::kDouble : torch::kFloat;
  const int64_t width = input.tokens.size(-1);
  const MoeSpec spec = read_moe_spec(options.config);
  check_input(input, layout, spec.options.experts);
  const at::Tensor tokens = in_type("tokens", input.tokens, type).reshape({-1, width}).clone().requires_grad_(true);
  const auto seed = options.config.at("run").at("seed").get<uint64_t>();

  const ParameterBound bound = bound_to_free_memory("layer");
  const auto layer = std::make_shared<MoeLayer>(spec, LayerContext{kPath, width, 4 * width});
  initialize(*layer, seed);
  convert(*layer, type);
  LayerProbe probe;
  probe.initialised = load_into(*layer, input.weights);

  RoutingContext context = input.context;
  for (auto& [purpose, samples] : context.samples) samples = in_type("noise." + purpose, samples, type);
  std::set<std::string> requested;
  context.requested = &requested;
  const ForwardMode mode = options.training ? ForwardMode::training() : ForwardMode::evaluation();
  const MoeInput pass{tokens, layout, mode, {seed, 0}, context};
  probe.output.routing = options.routing ? *options.routing : layer->route(pass);
  probe.output.tokens = layer->apply(pass, probe.output.routing);
  check_samples(context, requested, options.training);
  if (options.training) warn_of_missing_losses(spec.losses, probe.output.routing.losses);
  const at::Tensor gradient = input.gradient.defined() ? in_type("grad", input.gradient, type) : at::Tensor();
  const bool has_gradients = backward(probe.output, gradient);

  NamedTensors& tensors = probe.tensors;
  add(tensors, "output", probe.output.tokens.reshape(input.tokens.sizes()));
  if (probe.output.routing.soft)
    add_soft_routing(tensors, *probe.output.routing.soft);
  else
    add_routing(tensors, probe.output.routing);
  for (const NamedLoss& loss : probe.output.routing.losses) {
    add(tensors, "loss." + loss.name, loss.value);
    add(tensors, "loss_weight." + loss.name, torch::tensor(loss.weight, torch::kDouble));
  }
  if (has_gradients) {
    add(tensors, "grad.tokens", tokens.grad().defined() ? tokens.grad().reshape(input.tokens.sizes()) : at::Tensor());
    for (const auto& p : layer->named_parameters()) add(tensors, "grad." + p.key(), p.value().grad());
  }
  for (const auto& [name, tensor] : named_weights(*layer)) add(tensors, name, tensor);
  return probe;
}

}  // namespace sparsight
