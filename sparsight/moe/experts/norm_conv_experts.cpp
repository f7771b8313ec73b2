#include "sparsight/moe/experts/norm_conv_experts.h"

#include <algorithm>
#include <cmath>

#include "sparsight/core/error.h"
#include "sparsight/engine/conv_experts.h"
#include "sparsight/moe/dispatch/rows.h"
#include "sparsight/moe/experts/expert_parameters.h"
#include "sparsight/nn/packed_weights.h"
#include "sparsight/nn/patches.h"

namespace sparsight {
namespace {

// [R] int64: the expert of each row.
at::Tensor expert_of_rows(const at::Tensor& offsets) {
  const at::Tensor counts = offsets.diff();
  return at::repeat_interleave(at::arange(counts.size(0), counts.options()), counts);
}

}  // namespace

void NormConvExpertsOptions::declare(OptionSet& set) {
  set.integer("channels", &channels, {0, 1 << 20}, "channels of the square patch in a row; 0: the patch is one pixel");
  set.integer("kernel", &kernel, {1, 1023}, "kernel size of the convolution, odd");
  set.choice(
      "path", &path, {"gathered", "dense"},
      "gathered: convolve only the patches taken; dense: convolve the whole map with the others set to 0, as the "
      "paper's code does");
  set.choice("gate", &gate, {"input", "output"},
             "what the gate multiplies: the patch, as in the paper's code, or the output");
  set.choice("activation", &activation, activation_names(), "activation between batch norm and convolution");
  set.real("epsilon", &epsilon, {0, 1}, "epsilon of batch norm");
  set.real("momentum", &momentum, {0, 1},
           "momentum of batch norm, as in Keras: fraction of the running average kept at each batch");
  set.flag("debias", &debias,
           "the running averages of batch norm begin with the first batch; false: at mean 0 and variance 1, as in "
           "Keras");
  weights.declare(set);
}

int64_t NormConvExpertsOptions::filters_for(const ExpertShape& shape) const {
  const PatchShape patch = square_patch(channels, shape.width);
  if (kernel % 2 == 0) fail_usage("[experts] kernel must be odd, got ", kernel, "; use ", kernel + 1);
  if (path == "dense" && gate == "output")
    fail_usage("[experts] gate = \"output\" needs path = \"gathered\", got path = \"dense\"; change either");
  const int64_t positions = patch.height * patch.width, outputs = shape.output_width();
  if (outputs % (positions * shape.experts) != 0)
    fail_usage("[experts] norm_conv divides the output channels among the experts, but ", shape.experts,
               " does not divide ", static_cast<double>(outputs) / static_cast<double>(positions), " channels (",
               outputs, " values in a patch of ", positions,
               " positions); change the number of [moe] experts or shared experts");
  return outputs / (positions * shape.experts);
}

NormConvExperts::NormConvExperts(const NormConvExpertsOptions& options, const ExpertShape& shape)
    : options_(options),
      patch_(square_patch(options.channels, shape.width)),
      activation_(parse_activation(options.activation)),
      experts_(shape.experts),
      filters_(options.filters_for(shape)) {
  const int64_t taps = patch_.channels * options.kernel * options.kernel;
  w1 = register_parameter("w1", parameter_zeros({experts_, taps, filters_}));
  b1 = register_parameter("b1", parameter_zeros({experts_, filters_}));
  norm_weight = register_parameter("norm_weight", parameter_zeros({experts_, patch_.channels}));
  norm_bias = register_parameter("norm_bias", parameter_zeros({experts_, patch_.channels}));
  running_mean = register_buffer("running_mean", torch::zeros({experts_, patch_.channels}));
  running_var = register_buffer("running_var", torch::ones({experts_, patch_.channels}));
  batches = register_buffer("num_batches_tracked", torch::zeros({experts_}, torch::kLong));
}

at::Tensor NormConvExperts::normalised(const at::Tensor& maps, int64_t expert, const ForwardMode& mode) {
  const BatchNormTensors norm{norm_weight[expert], norm_bias[expert], running_mean[expert], running_var[expert],
                              batches[expert]};
  const BatchNormOptions options{patch_.channels, options_.epsilon, options_.momentum, options_.debias};
  return activate(batch_norm(maps, norm, options, mode.batch_statistics), activation_);
}

at::Tensor NormConvExperts::outputs(const at::Tensor& rows, const at::Tensor& offsets, const ForwardMode& mode) {
  const at::ScalarType type = expert_type(rows);
  const int64_t channels = patch_.channels, positions = patch_.height * patch_.width;
  const at::Tensor patches = rows.to(type).reshape({rows.size(0), channels, positions});  // [R,C,L]
  const at::Tensor ends = offsets.to(torch::kCPU, torch::kLong).contiguous();
  const int64_t* end = ends.data_ptr<int64_t>();
  std::vector<at::Tensor> parts;
  for (int64_t e = 0; e < experts_; ++e) {
    const int64_t count = end[e + 1] - end[e];
    if (count == 0) continue;
    // One image of all rows side by side: torch's sums over one image do not depend on the number of threads.
    const at::Tensor image = patches.narrow(0, end[e], count).transpose(0, 1).reshape({1, channels, count * positions});
    parts.push_back(normalised(image, e, mode).view({channels, count, positions}).transpose(0, 1));
  }
  // The parameters stay in the graph, with gradients of 0, where there are no rows.
  const at::Tensor ready =
      parts.empty() ? patches * norm_weight.sum().to(type) + norm_bias.sum().to(type) : at::cat(parts);
  const at::Tensor maps = patch_conv(ready.flatten(1), offsets, w1.to(type), b1.to(type), patch_,
                                     {options_.kernel, options_.kernel / 2, 1});  // [R,L,F]
  return maps.transpose(1, 2).flatten(1);
}

// slot: [R], token * E + expert of each row, all distinct.
at::Tensor NormConvExperts::scattered(const at::Tensor& outputs, const at::Tensor& slot, int64_t tokens) const {
  return at::zeros({tokens * experts_, outputs.size(1)}, outputs.options())
      .index_copy(0, slot, outputs)
      .view({tokens, experts_ * outputs.size(1)});
}

at::Tensor NormConvExperts::compute(const at::Tensor& rows, const at::Tensor& offsets, const RowContext& context) {
  const at::Tensor row = at::arange(rows.size(0), offsets.options());
  return scattered(outputs(rows, offsets, context.mode), row * experts_ + expert_of_rows(offsets), rows.size(0));
}

at::Tensor NormConvExperts::gathered(const at::Tensor& tokens, const Routing& routing, const ForwardMode& mode) {
  const at::Tensor gate = row_gates(routing).unsqueeze(1).to(tokens.scalar_type());
  at::Tensor rows = gather_rows(tokens, routing_map(routing));
  if (options_.gate == "input") rows = rows * gate;
  at::Tensor out = outputs(rows, routing.offsets, mode);
  if (options_.gate == "output") out = out * gate.to(out.scalar_type());
  const at::Tensor slot = (routing.token * experts_ + routing.expert).index_select(0, routing.order);
  return scattered(out, slot, tokens.size(0)).to(tokens.scalar_type());
}

at::Tensor NormConvExperts::dense(const at::Tensor& tokens, const Routing& routing, const ForwardMode& mode) {
  const TokenLayout& layout = routing.layout;
  if (layout.prefix != 0 || layout.grid_height * layout.grid_width != layout.per_image || routing.valid.defined())
    fail(
        "[experts] path = \"dense\" needs tokens that are all patches of a feature map, without prefix tokens or "
        "padding; choose path = \"gathered\"");
  const int64_t side = patch_.height, height = layout.grid_height * side, width = layout.grid_width * side;
  const at::ScalarType type = expert_type(tokens);
  const at::Tensor maps = patches_to_images(tokens.view({layout.images, layout.per_image, -1}), side, height, width);
  const at::Tensor slot = (routing.expert * routing.tokens + routing.token).index_select(0, routing.order);
  const at::Tensor gates = at::zeros({experts_ * routing.tokens}, routing.gate.options())
                               .index_copy(0, slot, row_gates(routing))
                               .view({experts_, layout.images, layout.grid_height, layout.grid_width});
  const at::Tensor weight = w1.to(type), bias = b1.to(type);
  std::vector<at::Tensor> out;
  for (int64_t e = 0; e < experts_; ++e) {
    const at::Tensor gate = at::upsample_nearest2d(gates[e].unsqueeze(1), {height, width});  // [B,1,H,W]
    const at::Tensor taken = normalised(maps.to(type) * gate.to(type), e, mode);
    const at::Tensor filters = weight[e].t().reshape({filters_, patch_.channels, options_.kernel, options_.kernel});
    out.push_back(at::conv2d(taken, filters, bias[e], 1, options_.kernel / 2));
  }
  return image_patches(at::cat(out, 1), side).flatten(0, 1).to(tokens.scalar_type());
}

at::Tensor NormConvExperts::apply_routing(const at::Tensor& tokens, const Routing& routing,
                                          const ExpertContext& context) {
  return options_.path == "dense" && tokens.size(0) > 0 ? dense(tokens, routing, context.mode)
                                                        : gathered(tokens, routing, context.mode);
}

void NormConvExperts::initialize(const InitRandom& random) {
  const int64_t positions = options_.kernel * options_.kernel;
  init_weights(w1, b1, {w1.size(1), filters_ * positions}, options_.weights, random.stream("w1"), random.stream("b1"));
  const torch::NoGradGuard no_grad;
  norm_weight.fill_(1);
  norm_bias.zero_();
  running_mean.zero_();
  running_var.fill_(1);
  batches.zero_();
}

std::unique_ptr<engine::Experts> NormConvExperts::compile(const engine::WeightForm&) const {
  if (options_.path == "dense")
    fail(
        "norm_conv experts with path = \"dense\" have no form without tensors: each convolves the whole map; use path "
        "= ",
        "\"gathered\"");
  const at::Tensor scale = norm_weight.to(at::kDouble) / (running_var.to(at::kDouble) + options_.epsilon).sqrt(),
                   shift = norm_bias.to(at::kDouble) - running_mean.to(at::kDouble) * scale;
  return std::make_unique<engine::NormConvExperts>(
      engine::PatchWindows{patch_.channels, patch_.height, options_.kernel, options_.kernel / 2, 1}, to_floats(scale),
      to_floats(shift), activation_, expert_linear(w1, b1), options_.gate == "input");
}

ExpertTensors NormConvExperts::expert_tensors() const {
  return {.refusal = "each of them computes its own output channels"};
}

Cost NormConvExperts::cost(const ExpertUse& use) const {
  const int64_t positions = patch_.height * patch_.width;
  const Cost norm = batch_norm_cost(patch_.channels) +
                    elementwise_cost(activation_operations(activation_) * patch_.channels),
             filter = conv_cost({patch_.channels, filters_, options_.kernel, /*bias=*/true});
  ExpertUse all = use;
  if (options_.path == "dense")  // every expert convolves the whole map
    all.rows = std::max(use.rows, static_cast<double>(use.experts * use.tokens));
  return experts_cost(on_units(norm + filter, positions), all);
}

}  // namespace sparsight
