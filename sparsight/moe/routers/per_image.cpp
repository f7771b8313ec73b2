#include "sparsight/moe/routers/per_image.h"

#include <algorithm>
#include <cstring>

#include "sparsight/core/error.h"
#include "sparsight/engine/routers/top_k.h"
#include "sparsight/moe/finish_routing.h"
#include "sparsight/moe/routers/router_logits.h"
#include "sparsight/moe/routers/softmax_topk.h"
#include "sparsight/nn/packed_weights.h"
#include "sparsight/ops/top_experts.h"

namespace sparsight {

namespace {

constexpr double kNormEpsilon = 1e-6;

}  // namespace

void PerImageOptions::declare(OptionSet& set) {
  ChoiceOptions::declare(set);
  TieOptions::declare(set);
  set.choice("input", &input, {"auto", "class_token", "mean_all", "mean_patches"},
             "the router's input; auto: the class token if there is one, else the mean of all tokens");
  set.choice("norm", &norm, {"none", "layer_norm", "affine"},
             "layer norm of the router's input; affine: with learned scale and shift");
  set.real("noise", &noise, {0, 1000},
           "standard deviation of the logit noise in training, as a multiple of 1/experts (1 for end-to-end "
           "training without super-classes)")
      .live = true;
  EvalNoiseOptions::declare(set);
  set.flag("renormalize", &renormalize, "divide the gates of an image by their sum (not in the paper)");
  set.flag("teacher_forced", &teacher_forced, "in training, route images to the expert of their super-class");
  set.flag("task_gradient", &task_gradient, "train the router with the task loss too, through the gates");
  set.flag("backbone_gradient", &backbone_gradient, "propagate the router's gradient to the layers before it");
}

at::Tensor image_vectors(const at::Tensor& tokens, const TokenLayout& layout, const at::Tensor& valid,
                         const std::string& input) {
  const int64_t images = layout.images, per_image = layout.per_image;
  const bool class_token = input == "class_token" || (input == "auto" && layout.prefix > 0);
  if (class_token) engine::check_class_token(layout);
  const auto type = tokens.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  const at::Tensor by_image = tokens.view({images, per_image, tokens.size(1)});
  if (class_token && per_image > 0) return by_image.select(1, 0).to(type);
  const int64_t first = input == "mean_patches" ? layout.prefix : 0;
  const at::Tensor rows = by_image.slice(1, first).to(type);
  if (!valid.defined()) return rows.sum(1) / std::max<int64_t>(1, rows.size(1));
  const at::Tensor counts = valid.reshape({images, per_image, 1}).slice(1, first);
  return rows.masked_fill(counts.logical_not(), 0).sum(1) / counts.sum(1).clamp_min(1);
}

namespace {

// [B,n] -> [N,n]
at::Tensor repeated(const at::Tensor& rows, int64_t times) {
  const int64_t images = rows.size(0), columns = rows.size(1);
  const bool differentiated = at::GradMode::is_enabled() && rows.requires_grad();
  if (differentiated || !rows.is_cpu() || !rows.is_contiguous())
    return rows.unsqueeze(1).expand({images, times, columns}).reshape({-1, columns});
  // For one image faster than three of torch's operations.
  at::Tensor out = at::empty({images * times, columns}, rows.options());
  const size_t bytes = rows.itemsize() * static_cast<size_t>(columns);
  auto* to = static_cast<char*>(out.data_ptr());
  for (int64_t image = 0; image < images; ++image) {
    const char* from = static_cast<const char*>(rows.const_data_ptr()) + static_cast<size_t>(image) * bytes;
    for (int64_t t = 0; t < times; ++t, to += bytes) std::memcpy(to, from, bytes);
  }
  return out;
}

}  // namespace

Routing spread_over_tokens(const Routing& of_images, int64_t per_image) {
  const auto spread = [&](const at::Tensor& rows) { return repeated(rows, per_image); };
  const int64_t images = of_images.tokens, k = of_images.per_token;
  Routing routing;
  routing.tokens = images * per_image;
  routing.experts = of_images.experts;
  routing.clean_logits = spread(of_images.clean_logits);
  routing.noisy_logits =
      of_images.noisy_logits.is_same(of_images.clean_logits) ? routing.clean_logits : spread(of_images.noisy_logits);
  routing.noise_scale = of_images.noise_scale;
  routing.scores = spread(of_images.scores);
  choose_per_token(routing, spread(of_images.expert.view({images, k})), spread(of_images.gate.view({images, k})));
  finish_routing(routing);
  return routing;
}

Routing with_forced_choice(Routing of_images, const at::Tensor& expert, bool renormalize) {
  const at::Tensor chosen = expert.unsqueeze(1), score = of_images.scores.gather(1, chosen);
  choose_per_token(of_images, chosen, renormalize ? at::ones_like(score) : score);
  of_images.kept = at::Tensor();
  finish_routing(of_images);
  return of_images;
}

PerImageRouter::PerImageRouter(const PerImageOptions& options, RouterShape shape)
    : weight(register_parameter("weight", parameter_zeros({shape.experts, shape.width}))), options_(options) {
  options_.check(shape.experts);
  if (options_.norm != "affine") return;
  norm_weight = register_parameter("norm_weight", torch::ones({shape.width}));
  norm_bias = register_parameter("norm_bias", parameter_zeros({shape.width}));
}

std::vector<LossWeight> PerImageRouter::default_losses() const { return {{"superclass", 0.3}}; }

Routing PerImageRouter::choose(const RouterInput& input) {
  const at::Tensor& valid = input.context.valid;
  at::Tensor seen = image_vectors(input.tokens, input.layout, valid, options_.input);
  if (!options_.backbone_gradient) seen = seen.detach();
  if (options_.norm != "none") {
    const NoAutocast fp32;
    seen = at::layer_norm(seen.to(weight.scalar_type()), {seen.size(1)}, norm_weight, norm_bias, kNormEpsilon);
  }
  const at::Tensor clean = router_logits(seen, weight);
  const double noise_std = options_.samples(input.mode.noise) ? options_.noise / static_cast<double>(clean.size(1)) : 0;
  at::Tensor epsilon;
  if (noise_std > 0) epsilon = router_normal(input, clean, "noise");
  Routing routing = route_softmax_topk(clean, epsilon, noise_std, options_.of(input.mode.choices), options_.renormalize,
                                       options_.draw(input, clean));
  if (options_.teacher_forced && input.mode.choices && input.context.target.defined())
    routing = with_forced_choice(routing, top_experts(input.context.target.to(torch::kFloat), 1).squeeze(1),
                                 options_.renormalize);
  if (!options_.task_gradient) routing.gate = routing.gate.detach();
  return spread_over_tokens(routing, input.layout.per_image);
}

void PerImageRouter::initialize(const InitRandom& random) {
  init_normal(weight, kVitStd, random.stream("weight"));
  if (!norm_weight.defined()) return;
  const torch::NoGradGuard no_grad;
  norm_weight.fill_(1);
  norm_bias.zero_();
}

std::unique_ptr<engine::Router> PerImageRouter::compile() const {
  if (options_.samples(false) && options_.noise > 0) fail_compile("eval_noise = true draws random numbers");
  if (options_.ties == "random") fail_compile("ties = \"random\" draws random numbers");
  using Source = engine::ImageVector::Source;
  engine::ImageVector vector;
  vector.source = options_.input == "mean_all"       ? Source::mean_all
                  : options_.input == "mean_patches" ? Source::mean_patches
                  : options_.input == "class_token"  ? Source::class_token
                                                     : Source::automatic;
  vector.norm = options_.norm != "none";
  if (vector.norm) {
    const at::Tensor ones = torch::ones({weight.size(1)});
    vector.norm_weight = to_floats(norm_weight.defined() ? norm_weight : ones);
    vector.norm_bias = to_floats(norm_bias.defined() ? norm_bias : torch::zeros_like(ones));
    vector.norm_epsilon = static_cast<float>(kNormEpsilon);
  }
  return std::make_unique<engine::TopKRouter>(
      engine::RouterLogits(linear_map(weight)),
      engine::TopKRule{.k = options_.of(false),
                       .gates = options_.renormalize ? engine::Gates::of_chosen : engine::Gates::probability},
      std::move(vector));
}

RouterCost PerImageRouter::cost(const TokenLayout& layout) const {
  const int64_t width = weight.size(1), experts = weight.size(0);
  Cost cost = router_cost(width, experts);  // once an image
  if (options_.norm == "affine") cost = cost + norm_cost(width);
  if (options_.norm == "layer_norm") cost = cost + elementwise_cost((kNormOperations - 2) * width);
  if (options_.noise > 0) cost = cost + elementwise_cost(kNoiseOperations * experts);
  const bool class_token = options_.input == "class_token" || (options_.input == "auto" && layout.prefix > 0);
  if (!class_token) cost = cost + elementwise_cost(layout.per_image * width);  // the mean of tokens
  const auto k = static_cast<double>(options_.k);
  return {cost, k * static_cast<double>(layout.per_image), k, options_.k, options_.k};
}

}  // namespace sparsight
